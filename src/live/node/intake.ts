/** Decides about blocks that peers send: too early, proofs, duplicates, false, or stored. */
import { equalBytes } from "../../bytes/hex.ts";
import { MillraceError } from "../../errors.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";
import { blockCount, blockLength, hashOfBlock, type PieceHeader } from "../header.ts";
import type { LiveVerifier } from "../signer.ts";
import type { LiveCounters } from "./live-counters.ts";
import type { LivePeer } from "./live-peer.ts";
import { isStored, type PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";
import { blockKey, type Puller } from "./puller.ts";

/** What an intake works with. */
export interface IntakeOptions {
  readonly window: PieceWindow;
  readonly puller: Puller;
  readonly verifier: LiveVerifier;
  readonly counters: LiveCounters;
  /** Monotonic ms. */
  readonly now: () => number;
  /** A block that fits its piece came; whether it is genuine is not known yet. */
  readonly came: (peer: LivePeer, seq: number, block: number) => void;
  /** `peer` delivered `bytes` that are genuine. */
  readonly proved: (peer: LivePeer, bytes: number) => void;
  readonly store: (header: PieceHeader, block: number, data: Uint8Array, from: LivePeer) => void;
  readonly ban: (peer: LivePeer, error: MillraceError) => void;
}

/** Checks the blocks of one member and hands the genuine ones on. */
export class Intake {
  private readonly options: IntakeOptions;
  /** Monotonic ms until which poisoners are assumed to be present, by the last false block. */
  waryUntilMs = -Infinity;

  constructor(options: IntakeOptions) {
    this.options = options;
  }

  /** A block came, requested or pushed. `data` is kept. */
  block(peer: LivePeer, seq: number, offset: number, data: Uint8Array): void {
    if (peer.closed) return;
    const { window, counters, puller, verifier, came, proved, store } = this.options;
    const entry = window.get(seq);
    const header = entry?.header;
    if (header == null) return this.await(peer, seq, offset, data);
    const block = offset / BLOCK_BYTES;
    const stored = entry!.blocks[block];
    if (isStored(stored) && data.length < stored.length) {
      return this.beginning(peer, blockKey(seq, block), data, stored);
    }
    const isBlock = Number.isInteger(block) && block < blockCount(header.lengthBytes) &&
      data.length === blockLength(header.lengthBytes, block);
    if (!isBlock) {
      return this.options.ban(peer, new MillraceError("protocol_violation", "a block does not fit its piece"));
    }
    came(peer, seq, block);
    if (isStored(entry!.blocks[block])) {
      counters.duplicateBytes += data.length;
      puller.arrived(seq, block, peer, data.length);
      if (peer.isProven) return;
    }
    verifier.block(data, hashOfBlock(header, block), (genuine) => {
      if (!genuine) {
        puller.spoiled(seq, block);
        return this.poisoned(peer, "a block does not match its hash");
      }
      proved(peer, data.length);
      store(header, block, data, peer);
    });
  }

  /** Its header is under verification, or nobody knows it. */
  private await(peer: LivePeer, seq: number, offset: number, data: Uint8Array): void {
    const waiting = peer.verifying.get(seq);
    if (waiting === undefined || peer.waitingBlocks >= POLICY.waitingBlockLimit) {
      this.options.counters.duplicateBytes += data.length;
      return;
    }
    peer.waitingBlocks++;
    waiting.push(() => {
      peer.waitingBlocks--;
      this.block(peer, seq, offset, data);
    });
  }

  /**
   * The beginning of a block that is here came from `peer`. A peer that proves itself after
   * the proof is no longer wanted is slow, not hostile.
   */
  private beginning(peer: LivePeer, key: number, data: Uint8Array, stored: Uint8Array): void {
    if (peer.requests.get(key)?.bytes === data.length) peer.requests.delete(key);
    this.options.counters.duplicateBytes += data.length;
    if (!equalBytes(data, stored.subarray(0, data.length))) return this.poisoned(peer, "a block is not what it was");
    if (data.length >= POLICY.proofBytes) this.options.proved(peer, data.length);
  }

  private poisoned(peer: LivePeer, message: string): void {
    this.options.counters.badBlocks++;
    this.waryUntilMs = this.options.now() + POLICY.waryMs;
    this.options.ban(peer, new MillraceError("protocol_violation", message));
  }
}
