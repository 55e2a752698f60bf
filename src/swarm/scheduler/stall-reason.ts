/** Why a reader waits. */
import type { Core } from "./core.ts";
import { COMPLETE, HAVE } from "./pieces.ts";
import type { ReaderState } from "./reader-state.ts";

/** A reader waits this long before peers count as slow. */
const SLOW_MS = 1000;

/** First missing piece of the awaited range (or at the position), -1 when all has arrived. */
function firstLacking(core: Core, reader: ReaderState): number {
  const { book } = core;
  if (reader.position >= reader.end) return -1;
  const end = Math.min(book.pieceCount, Math.ceil(Math.max(reader.waitingEnd, reader.position + 1) / book.pieceBytes));
  for (let piece = reader.first; piece < end; piece++) if (book.state[piece] !== HAVE) return piece;
  return -1;
}

/** Updates `waitingSinceMs`. */
export function noteWaiting(core: Core, reader: ReaderState, nowMs: number): void {
  const waiting = reader.waitingEnd > reader.position && firstLacking(core, reader) >= 0;
  reader.noteWaiting(waiting, nowMs);
}

/** See `SchedulerApi.stallReason`. */
export function stallReason(
  core: Core,
  reader: ReaderState,
  nowMs: number,
): "no_peers" | "missing_piece" | "choked" | "slow_peers" | null {
  const piece = firstLacking(core, reader);
  if (piece < 0 || core.book.state[piece] === COMPLETE) return null;
  if (core.peers.size === 0) return "no_peers";
  if (core.book.holders(piece) === 0) return "missing_piece";
  let open = false;
  for (const peer of core.peers.values()) open ||= peer.offers(piece, nowMs);
  if (!open) return "choked";
  return reader.waitingSinceMs !== null && nowMs - reader.waitingSinceMs >= SLOW_MS ? "slow_peers" : null;
}
