/** What a member of a live swarm has for playback. */
import { FLAG_DISCONTINUITY } from "../header.ts";
import type { LiveNode } from "../node/live-node.ts";
import type { LiveFeed } from "../node/stream/feed.ts";
import { isComplete } from "../node/stream/piece-window.ts";
import type { LiveSupply, SuppliedPiece } from "./live-source.ts";

/** The supply of one member. */
export class NodeSupply implements LiveSupply {
  readonly #node: LiveNode;

  constructor(node: LiveNode) {
    this.#node = node;
  }

  get joined(): boolean {
    return this.#node.joined;
  }

  get behindMs(): number | null {
    return this.#node.behindMs;
  }

  get newestSeq(): number | null {
    return this.#node.window.newest?.seq ?? null;
  }

  get hasPieces(): boolean {
    const { solid, base } = this.#node.window;
    return solid > base;
  }

  get heldMs(): number {
    const { window } = this.#node;
    const first = window.get(window.base)?.header;
    const last = window.get(window.solid - 1)?.header;
    return first == null || last == null ? 0 : last.timestampMs - first.timestampMs;
  }

  piecesBefore(seq: number, leastMs: number): SuppliedPiece[] {
    const { window } = this.#node;
    const pieces: SuppliedPiece[] = [];
    for (let at = seq - 1; at >= window.base; at--) {
      const entry = window.get(at);
      if (!isComplete(entry) || entry.header.timestampMs < leastMs) break;
      const discontinuity = (entry.header.flags & FLAG_DISCONTINUITY) !== 0;
      pieces.push({ header: entry.header, blocks: entry.blocks as Uint8Array[], discontinuity });
    }
    return pieces.reverse();
  }

  openFeed(): LiveFeed {
    return this.#node.openFeed();
  }

  closeFeed(feed: LiveFeed): void {
    this.#node.closeFeed(feed);
  }
}
