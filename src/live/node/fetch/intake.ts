/** Sorts blocks that peers send: too early (no header yet), a proof, a duplicate, false, or good and stored. */
import { equalBytes } from "../../../bytes/hex.ts";
import { MillraceError } from "../../../errors.ts";
import { grave } from "../../../wire/offence.ts";
import { BLOCK_BYTES } from "../../../wire/types.ts";
import { blockCount, blockLength, hashOfBlock, type PieceHeader } from "../../header.ts";
import type { Edge } from "./edge.ts";
import type { Headerless } from "./headerless.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import type { Parents } from "../trees/parents.ts";
import { isStored } from "../stream/piece-window.ts";
import { POLICY } from "../policy.ts";
import type { Puller } from "./puller.ts";
import { blockKey } from "../stream/substreams.ts";

/** Takes genuine blocks. */
export interface IntakeSink {
  /** `peer` delivered `bytes` that are genuine. */
  proved(peer: LivePeer, bytes: number): void;
  /** A block is genuine. */
  store(header: PieceHeader, block: number, data: Uint8Array, from: LivePeer): void;
}

/** Checks the blocks of one member and hands the genuine ones on. */
export class Intake {
  readonly #view: NodeView;
  readonly #puller: Puller;
  readonly #parents: Parents;
  readonly #edge: Edge;
  readonly #headerless: Headerless;
  readonly #sink: IntakeSink;

  constructor(view: NodeView, puller: Puller, parents: Parents, edge: Edge, headerless: Headerless, sink: IntakeSink) {
    this.#edge = edge;
    this.#view = view;
    this.#headerless = headerless;
    this.#puller = puller;
    this.#parents = parents;
    this.#sink = sink;
  }

  /** A block came, requested or pushed. `data` is kept. */
  block(peer: LivePeer, seq: number, offset: number, data: Uint8Array): void {
    if (peer.closed) return;
    const puller = this.#puller;
    const sink = this.#sink;
    const { window, counters, verifier } = this.#view;
    const entry = window.get(seq);
    const header = entry?.header;
    if (header == null) return this.#await(peer, seq, offset, data);
    const block = offset / BLOCK_BYTES;
    const stored = entry!.blocks[block];
    if (isStored(stored) && data.length < stored.length) {
      return this.#beginning(peer, blockKey(seq, block), data, stored);
    }
    const isBlock = Number.isInteger(block) && block < blockCount(header.lengthBytes) &&
      data.length === blockLength(header.lengthBytes, block);
    if (!isBlock) {
      return this.#view.ban(peer, new MillraceError("protocol_violation", "a block does not fit its piece"));
    }
    const isPushed = !peer.requests.has(blockKey(seq, block));
    if (isPushed) this.#headerless.came(peer, seq, this.#view.substreamOf(seq, block));
    this.#parents.delivered(peer, this.#view.substreamOf(seq, block), seq, this.#view.now());
    if (isStored(entry!.blocks[block])) {
      counters.duplicateBytes += data.length;
      puller.arrived(seq, block, peer, data.length);
      if (peer.isProven) return;
    }
    verifier.block(data, hashOfBlock(header, block), (genuine) => {
      if (!genuine) {
        puller.spoiled(seq, block);
        return this.#poisoned(peer, "a block does not match its hash");
      }
      sink.proved(peer, data.length);
      sink.store(header, block, data, peer);
    });
  }

  /** A block whose header is under verification, or is unknown. */
  #await(peer: LivePeer, seq: number, offset: number, data: Uint8Array): void {
    const isVerifying = this.#edge.isVerifying(peer, seq);
    const again = () => this.block(peer, seq, offset, data);
    const block = offset / BLOCK_BYTES;
    const isWhole = Number.isInteger(block) && data.length <= BLOCK_BYTES;
    if (!isVerifying && isWhole && this.#headerless.hold(peer, seq, block, again)) return;
    if (!this.#edge.await(peer, seq, again)) this.#view.counters.duplicateBytes += data.length;
  }

  /**
   * `peer` sent the beginning of a block that has arrived. A peer that proves itself after the proof is no longer wanted is
   * slow, not hostile.
   */
  #beginning(peer: LivePeer, key: number, data: Uint8Array, stored: Uint8Array): void {
    if (peer.requests.get(key)?.bytes === data.length) peer.requests.delete(key);
    this.#view.counters.duplicateBytes += data.length;
    if (!equalBytes(data, stored.subarray(0, data.length))) return this.#poisoned(peer, "a block is not what it was");
    if (data.length >= POLICY.proofBytes) this.#sink.proved(peer, data.length);
  }

  #poisoned(peer: LivePeer, message: string): void {
    this.#view.counters.badBlocks++;
    this.#view.beWary();
    this.#view.ban(peer, grave("lie", message));
  }
}
