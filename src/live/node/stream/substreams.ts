/** Numbers of blocks and substreams; which blocks of each substream have arrived, and which should be. */
import type { PieceWindow } from "./piece-window.ts";
import { POLICY } from "../policy.ts";
import type { StreamRate } from "./stream-rate.ts";

/** Most blocks of one piece, so that piece and block make one key. */
const KEY_FACTOR = 256;
/** Number that names a block. */
export function blockKey(seq: number, block: number): number {
  return seq * KEY_FACTOR + block;
}

/** Substream of a block: consecutive blocks go to different trees. */
export function substreamOf(seq: number, block: number, blocksPerPiece: number, substreams: number): number {
  return (seq * blocksPerPiece + block) % substreams;
}

/** A window and how its blocks are dealt to substreams. */
export interface SubstreamsOptions {
  readonly window: PieceWindow;
  readonly rate: StreamRate;
  readonly substreams: number;
  readonly blocksPerPiece: number;
}

/** True when something of `substream` before piece `seq` is still to come. */
export function lacksBefore(options: SubstreamsOptions, substream: number, seq: number): boolean {
  const { window, blocksPerPiece, substreams } = options;
  for (let before = window.solid; before < seq; before++) {
    const entry = window.get(before);
    for (let block = 0; block < (entry?.blocks.length || blocksPerPiece); block++) {
      if (substreamOf(before, block, blocksPerPiece, substreams) === substream && entry?.blocks[block] == null) {
        return true;
      }
    }
  }
  return false;
}

/** What the parent of a substream owes us. */
export interface Owed {
  /** The first piece. */
  readonly fromSeq: number;
  /** The parent has already delivered something. */
  readonly isProven: boolean;
}

/** Blocks of each substream that its parent should have brought by now; `owed`: by substream. */
export function lateBlocks(
  { window, rate, blocksPerPiece, substreams }: SubstreamsOptions,
  owed: readonly Owed[],
  nowMs: number,
): Uint16Array {
  const late = new Uint16Array(substreams);
  const { newest } = window;
  if (newest === null) return late;
  const newestMs = window.get(newest.seq)?.headerMs ?? null;
  const isMoving = newestMs !== null && nowMs - newestMs < POLICY.silentMs;
  const oldest = newest.seq - rate.pieces(POLICY.judgeMs, POLICY.leastPiecesJudged);
  for (let seq = Math.max(window.solid, oldest); seq <= newest.seq; seq++) {
    const entry = window.get(seq);
    if (entry === undefined || entry.header === null || entry.missing === 0) continue;
    const isCommon = entry.commonMs !== null && nowMs - entry.commonMs >= POLICY.parentLagMs;
    const knownMs = isMoving && entry.headerMs !== null ? nowMs - entry.headerMs : 0;
    if (!isCommon && knownMs < POLICY.starvedMs) continue;
    for (let block = 0; block < entry.blocks.length; block++) {
      if (entry.blocks[block] != null) continue;
      const substream = substreamOf(seq, block, blocksPerPiece, substreams);
      const { fromSeq, isProven } = owed[substream]!;
      const overdueMs = isProven ? POLICY.overdueMs : POLICY.starvedMs;
      if (seq >= fromSeq && (isCommon || knownMs >= overdueMs)) late[substream]!++;
    }
  }
  return late;
}
