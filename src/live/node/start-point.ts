/** Where a reader that has not begun hopes to begin: nothing older is fetched for it. */
import { blockCount, FLAG_RANDOM_ACCESS, type PieceHeader } from "../header.ts";
import type { PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";

/** The random access point at which one reader hopes to begin. */
export class StartPoint {
  readonly #window: PieceWindow;
  /** Null before one is known. */
  #hope: PieceHeader | null = null;

  /** For a reader of `window`. */
  constructor(window: PieceWindow) {
    this.#window = window;
  }

  /**
   * The number of its piece; that of the oldest piece while no point is known. A place that moved on with the edge would leave
   * too little time for pulls, which come a second after pushes. So it is kept until it falls too far behind, or until fewer
   * blocks have to come for a later one: where lines are full, pulls of what was there before us are served
   * last, and pushes have long brought all of a later point.
   */
  get seq(): number {
    const window = this.#window;
    const edge = window.newest;
    if (edge === null) return window.base;
    let best = this.#kept(edge);
    let least = best === null ? Infinity : this.#blocksToCome(best, edge);
    const oldest = best === null ? window.base : best.seq + 1;
    for (let seq = edge.seq; seq >= oldest; seq--) {
      const header = window.get(seq)?.header;
      if (header == null || (header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      if (best !== null && !isNear(header, edge)) break;
      const blocks = this.#blocksToCome(header, edge);
      if (blocks < least) [best, least] = [header, blocks];
    }
    this.#hope = best;
    return best?.seq ?? window.base;
  }

  /** Starts again: pieces have other numbers. */
  reset(): void {
    this.#hope = null;
  }

  #kept(edge: PieceHeader): PieceHeader | null {
    const hope = this.#hope;
    if (hope === null || hope.epoch !== edge.epoch || hope.seq < this.#window.base) return null;
    return isNear(hope, edge) ? hope : null;
  }

  /** Blocks that have to come before playing can begin at `start`, those not captured yet included. */
  #blocksToCome(start: PieceHeader, edge: PieceHeader): number {
    const blocksPerPiece = blockCount(edge.lengthBytes);
    let blocks = 0;
    for (let seq = start.seq; seq <= edge.seq; seq++) {
      const entry = this.#window.get(seq);
      if (entry?.header == null) blocks += blocksPerPiece;
      else if (entry.header.timestampMs - start.timestampMs >= POLICY.startBufferMs) return blocks;
      else blocks += entry.missing;
    }
    const lastMs = edge.timestampMs - (this.#window.get(edge.seq - 1)?.header?.timestampMs ?? -Infinity);
    const leftMs = POLICY.startBufferMs - (edge.timestampMs - start.timestampMs) - lastMs;
    return leftMs <= 0 ? blocks : blocks + Math.ceil(leftMs / Math.max(1, lastMs)) * blocksPerPiece;
  }
}

function isNear(point: PieceHeader, edge: PieceHeader): boolean {
  return edge.timestampMs - point.timestampMs <= POLICY.startHoldMs;
}
