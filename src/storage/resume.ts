/** The resume file: what a torrent's directory held at the last save. */
import { Bitfield } from "../bytes/bitfield.ts";
import { fromHex, toHex } from "../bytes/hex.ts";
import type { FilePort } from "../ports.ts";
import type { Placement } from "./placement.ts";

/** The claims of a resume file. None of them is trusted until the files have been checked. */
export interface ResumeClaims {
  readonly layout: Placement["kind"];
  readonly pieceLengthBytes: number;
  readonly pieceCount: number;
  readonly totalBytes: number;
  /** As in `PieceShape`: what is stored is counted by it before the torrent is known again. */
  readonly shortPieces?: ReadonlyMap<number, number>;
  readonly have: Bitfield;
  /** Extents, least recently used first. */
  readonly order: readonly number[];
  /** Wall clock of the last save, Unix ms. */
  readonly usedMs: number;
}

const VERSION = 1;
/** Largest resume file read: 800,000 pieces and as many extents need 7 MB. */
const MAX_RESUME_BYTES = 16 * 1024 * 1024;

/** Saves atomically. Rejects with `disk_full` or `io`. */
export async function saveResume(files: FilePort, path: string, resume: ResumeClaims): Promise<void> {
  const { have, shortPieces } = resume;
  const text = JSON.stringify({
    version: VERSION,
    ...resume,
    have: toHex(have.bytes),
    shortPieces: shortPieces && [...shortPieces],
  });
  await files.writeFile(path, new TextEncoder().encode(text));
}

/** Reads a resume file and the file system's time of its last write; null when there is no usable one. */
export async function loadResume(
  files: FilePort,
  path: string,
): Promise<{ readonly resume: ResumeClaims; readonly savedMs: number } | null> {
  try {
    const { modifiedMs } = await files.info(path);
    const bytes = await files.readFile(path, { maxBytes: MAX_RESUME_BYTES });
    const resume = parseResume(new TextDecoder().decode(bytes));
    return resume === null ? null : { resume, savedMs: modifiedMs };
  } catch {
    // Missing, unreadable and damaged are the same: the pieces it would have claimed are fetched again.
    return null;
  }
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

function parseResume(text: string): ResumeClaims | null {
  const raw: unknown = JSON.parse(text);
  if (typeof raw !== "object" || raw === null) return null;
  const fields = raw as Record<string, unknown>;
  const { version, layout, pieceLengthBytes, pieceCount, totalBytes, have, order, usedMs, shortPieces } = fields;
  if (version !== VERSION || (layout !== "files" && layout !== "extents")) return null;
  if (!isCount(pieceLengthBytes) || !isCount(pieceCount) || !isCount(totalBytes) || !isCount(usedMs)) return null;
  if (typeof have !== "string" || have.length !== 2 * ((pieceCount + 7) >> 3)) return null;
  if (!Array.isArray(order) || !order.every(isCount)) return null;
  const isPair = (pair: unknown) => Array.isArray(pair) && pair.length === 2 && pair.every(isCount);
  if (shortPieces !== undefined && !(Array.isArray(shortPieces) && shortPieces.every(isPair))) return null;
  return {
    layout,
    pieceLengthBytes,
    pieceCount,
    totalBytes,
    usedMs,
    ...(shortPieces === undefined ? {} : { shortPieces: new Map(shortPieces as [number, number][]) }),
    order: order as number[],
    have: new Bitfield(pieceCount, fromHex(have)),
  };
}
