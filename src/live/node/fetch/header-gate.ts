/** Decides about headers that peers send: known, too old, too many, forged, or verified. */
import { grave } from "../../../wire/offence.ts";
import { headerPlace, type PieceHeader } from "../../header.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import { Allowance } from "../../../bytes/allowance.ts";
import type { PieceWindow } from "../stream/piece-window.ts";
import { BOUNDS } from "../neighbour/bounds.ts";

/** True for a header that is out of date: epoch and time must grow, and it must lie within the window. */
export function isReplay(header: PieceHeader, window: PieceWindow): boolean {
  const newest = window.newest;
  if (newest === null) return false;
  if (header.epoch !== newest.epoch) return header.epoch < newest.epoch || header.timestampMs <= newest.timestampMs;
  if (header.seq < window.base) return true;
  return header.seq > newest.seq ? header.timestampMs <= newest.timestampMs : header.timestampMs > newest.timestampMs;
}

/** The headers of a neighbour that are under verification. */
interface Offers {
  readonly allowance: Allowance;
  /** Number of the piece → the blocks that wait for its header. */
  readonly verifying: Map<number, (() => void)[]>;
  waitingBlocks: number;
  forged: number;
}

/** Lets verified headers through, and bans peers that send forged ones. */
export class HeaderGate {
  readonly #view: NodeView;
  readonly #genuine: (peer: LivePeer, header: PieceHeader) => void;
  readonly #offers = new Notes<Offers>(({ connectedMs }) => ({
    allowance: new Allowance(BOUNDS.headersPerS, BOUNDS.headersPerS, connectedMs),
    verifying: new Map(),
    waitingBlocks: 0,
    forged: 0,
  }));

  /** `genuine`: a peer sent a header that verified. */
  constructor(view: NodeView, genuine: (peer: LivePeer, header: PieceHeader) => void) {
    this.#view = view;
    this.#genuine = genuine;
  }

  /**
   * True when the header in `bytes` is for a piece that already has one. It is not read further: a second header is
   * either the same or worthless.
   */
  isKnown(peer: LivePeer, bytes: Uint8Array): boolean {
    const place = headerPlace(bytes);
    const known = place === null ? null : this.#view.window.get(place.seq)?.header;
    if (place === null || known == null || known.epoch !== place.epoch) return false;
    peer.knowsHeader(place.seq);
    return true;
  }

  /** `peer` sent `header`. */
  offer(peer: LivePeer, header: PieceHeader, nowMs: number): void {
    const { window, rate, counters, verifier } = this.#view;
    peer.knowsHeader(header.seq);
    const { verifying, allowance } = this.#offers.of(peer);
    if (isReplay(header, window) || verifying.has(header.seq)) return;
    const perSecond = rate.pieces(2000, BOUNDS.headersPerS);
    allowance.setRate(perSecond, perSecond, nowMs);
    if (!allowance.take(1, nowMs)) {
      counters.skippedVerifications++;
      return;
    }
    const waiting: (() => void)[] = [];
    verifying.set(header.seq, waiting);
    verifier.header(header, (isGenuine) => {
      verifying.delete(header.seq);
      if (isGenuine) this.#genuine(peer, header);
      else this.#forged(peer);
      for (const again of waiting) again();
    });
  }

  /** True while a header of `peer` for piece `seq` is under verification. */
  isVerifying(peer: LivePeer, seq: number): boolean {
    return this.#offers.of(peer).verifying.has(seq);
  }

  /** Calls `again` once the header of `peer` for piece `seq` was verified; false when too many blocks wait, or none is. */
  await(peer: LivePeer, seq: number, again: () => void): boolean {
    const offers = this.#offers.of(peer);
    const waiting = offers.verifying.get(seq);
    if (waiting === undefined || offers.waitingBlocks >= BOUNDS.waitingBlockLimit) return false;
    offers.waitingBlocks++;
    waiting.push(() => {
      offers.waitingBlocks--;
      again();
    });
    return true;
  }

  #forged(peer: LivePeer): void {
    this.#view.counters.forgedHeaders++;
    if (++this.#offers.of(peer).forged < BOUNDS.forgedHeaderLimit) return;
    this.#view.ban(peer, grave("lie", "headers with false signatures"));
  }
}
