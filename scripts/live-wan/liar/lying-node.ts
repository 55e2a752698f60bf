/** Takes the place of `src/live/node/live-node.ts` in an engine that lies. */
import process from "node:process";
import { decodeBundle, encodeBundle } from "../../../src/live/bundle.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../../src/live/messages.ts";
import { LiveNode as HonestNode } from "../../../src/live/node/live-node.ts";
import type { LiveNodeOptions } from "../../../src/live/node/live-options.ts";
import type { LiveLane, LiveLink } from "../../../src/live/node/neighbour/live-lane.ts";
import type { LivePeer, LivePeerInfo } from "../../../src/live/node/neighbour/live-peer.ts";
import { POLICY } from "../../../src/live/node/policy.ts";
import { keepsBlocks, LIAR_UP_SHARE, type LiarKind, liedPlace } from "../../../test/simulation/lies.ts";
import { LIES_VARIABLE } from "./lies-variable.ts";

/** How this program lies. */
export const KIND = process.env[LIES_VARIABLE] as LiarKind;

/** A member that says what `KIND` says, and keeps what it should pass on. */
export class LiveNode extends HonestNode {
  readonly #options: LiveNodeOptions;

  constructor(options: LiveNodeOptions) {
    super(options);
    this.#options = options;
  }

  override connected(link: LiveLink, info: LivePeerInfo): LivePeer {
    return super.connected(new LyingLink(link, this.#options), info);
  }

  override spareOpened(peer: LivePeer, link: LiveLink): LiveLane | null {
    return super.spareOpened(peer, new LyingLink(link, this.#options));
  }
}

/** Changes what goes to one neighbour. */
class LyingLink implements LiveLink {
  readonly #link: LiveLink;
  readonly #options: LiveNodeOptions;

  constructor(link: LiveLink, options: LiveNodeOptions) {
    this.#link = link;
    this.#options = options;
  }

  send(message: Uint8Array): void {
    const parts = (decodeBundle(message) ?? [message]).map((part) => this.#lied(part));
    this.#link.send(parts.length === 1 ? parts[0]! : encodeBundle(parts));
  }

  #lied(part: Uint8Array): Uint8Array {
    const message = decodeLiveMessage(part);
    if (message?.type !== "place") return part;
    return encodeLiveMessage(liedPlace(message, KIND, LIAR_UP_SHARE * this.#options.stream.bytesPerS));
  }

  request(seq: number, offset: number, length: number): void {
    this.#link.request(seq, offset, length);
  }

  cancel(seq: number, offset: number, length: number): void {
    this.#link.cancel(seq, offset, length);
  }

  reject(seq: number, offset: number, length: number): void {
    this.#link.reject(seq, offset, length);
  }

  piece(seq: number, offset: number, data: Uint8Array): void {
    if (data.length > POLICY.proofBytes && keepsBlocks(KIND, this.#options.clock.monotonic())) return;
    this.#link.piece(seq, offset, data);
  }

  close(error: Parameters<LiveLink["close"]>[0]): void {
    this.#link.close(error);
  }
}
