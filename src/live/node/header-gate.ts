/** Decides about headers that peers send: known, too old, too many, forged, or verified. */
import { MillraceError } from "../../errors.ts";
import { headerPlace, type PieceHeader } from "../header.ts";
import type { LiveCounters } from "./live-counters.ts";
import type { LivePeer } from "./live-peer.ts";
import type { PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";
import type { StreamRate } from "./stream-rate.ts";
import type { LiveVerifier } from "../signer.ts";

/** What a gate works with. */
export interface HeaderGateOptions {
  readonly window: PieceWindow;
  readonly rate: StreamRate;
  readonly verifier: LiveVerifier;
  readonly counters: LiveCounters;
  /** `peer` sent a header that verified. */
  readonly genuine: (peer: LivePeer, header: PieceHeader) => void;
  readonly ban: (peer: LivePeer, error: MillraceError) => void;
}

/** True for a header that is out of date: epoch and time must grow, and it must lie within the window. */
export function isReplay(header: PieceHeader, window: PieceWindow): boolean {
  const newest = window.newest;
  if (newest === null) return false;
  if (header.epoch !== newest.epoch) return header.epoch < newest.epoch || header.timestampMs <= newest.timestampMs;
  if (header.seq < window.base) return true;
  return header.seq > newest.seq ? header.timestampMs <= newest.timestampMs : header.timestampMs > newest.timestampMs;
}

/** Lets verified headers through, and bans peers that send forged ones. */
export class HeaderGate {
  private readonly options: HeaderGateOptions;

  constructor(options: HeaderGateOptions) {
    this.options = options;
  }

  /**
   * True when the header in `bytes` is for a piece that already has one: the rest needs no look, since a second header is
   * either the same or worthless.
   */
  isKnown(peer: LivePeer, bytes: Uint8Array): boolean {
    const place = headerPlace(bytes);
    const known = place === null ? null : this.options.window.get(place.seq)?.header;
    if (place === null || known == null || known.epoch !== place.epoch) return false;
    peer.knowsHeader(place.seq);
    return true;
  }

  /** `peer` sent `header`. */
  offer(peer: LivePeer, header: PieceHeader, nowMs: number): void {
    const { window, rate, counters, verifier, genuine } = this.options;
    peer.knowsHeader(header.seq);
    if (isReplay(header, window) || peer.verifying.has(header.seq)) return;
    if (!peer.headerBucket.take(nowMs, rate.pieces(2000, POLICY.headersPerS))) {
      counters.skippedVerifications++;
      return;
    }
    const waiting: (() => void)[] = [];
    peer.verifying.set(header.seq, waiting);
    verifier.header(header, (isGenuine) => {
      peer.verifying.delete(header.seq);
      if (isGenuine) genuine(peer, header);
      else this.forged(peer);
      for (const again of waiting) again();
    });
  }

  private forged(peer: LivePeer): void {
    this.options.counters.forgedHeaders++;
    if (++peer.forgedHeaders < POLICY.forgedHeaderLimit) return;
    this.options.ban(peer, new MillraceError("protocol_violation", "headers with false signatures"));
  }
}
