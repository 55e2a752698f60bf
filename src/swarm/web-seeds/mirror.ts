/** What is known of one web seed, whether it is being used or not. */
import { Bitfield } from "../../bytes/bitfield.ts";
import type { Metainfo, MetainfoFile } from "../../metainfo/types.ts";

/** Requests that stand at a server at once: while one waits for its first byte, the others fill the line. */
export const MAX_REQUESTS = 4;

/** Size of the first run, bytes: little enough that others share a start, and not slow at any server. */
const FIRST_RUN_BYTES = 256 * 1024;

/** A server that sent this many bad pieces is not asked again: it keeps another version of the torrent. */
const MAX_BAD_PIECES = 16;

/** Pause after a failure, ms, doubled with each further failure in a row. */
const FIRST_BACKOFF_MS = 2_000;
const LAST_BACKOFF_MS = 300_000;

/** The pause after `failures` failures in a row, ms. */
export function backoffMs(failures: number): number {
  return Math.min(LAST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
}

/** Pieces that hold bytes of the file. */
export function piecesOf({ pieceLengthBytes }: Metainfo, file: MetainfoFile): { first: number; end: number } {
  const first = Math.floor(file.offset / pieceLengthBytes);
  return { first, end: file.sizeBytes === 0 ? first : Math.ceil((file.offset + file.sizeBytes) / pieceLengthBytes) };
}

interface FileRest {
  readonly untilMs: number;
  readonly failures: number;
}

/** What a web seed sends: files (BEP 19), or parts of pieces (BEP 17). */
export type MirrorKind = "files" | "pieces";

/** One web seed. A file that it lacks, or has in another version, says nothing about its other files. */
export class Mirror {
  /** What the torrent names. */
  readonly url: string;
  readonly kind: MirrorKind;
  /** Its numbers among the sources of the swarm, the present one last. It gets a new one after each bad piece. */
  readonly sources: number[];
  /** Not before, monotonic ms. */
  dueMs = 0;
  /** Failures of the server in a row. */
  failures = 0;
  /** Requests that it takes at once, 1–`MAX_REQUESTS`. */
  maxRequests = MAX_REQUESTS;
  /** How much it is asked for at once, bytes. Busy servers count requests, so it outlasts their refusals. */
  runBytes = FIRST_RUN_BYTES;
  /** The server sends ranges; otherwise each response is a whole file. */
  sendsRanges = true;
  /** The server is never asked again. */
  isBarred = false;
  readonly #metainfo: Metainfo;
  readonly #rests = new Map<number, FileRest>();
  /** Files that it has sent something of. */
  readonly #sentFiles = new Set<number>();
  readonly #badFiles = new Set<number>();
  readonly #badPieces = new Set<number>();

  constructor(metainfo: Metainfo, url: string, kind: MirrorKind, source: number) {
    this.#metainfo = metainfo;
    this.url = url;
    this.kind = kind;
    this.sources = [source];
  }

  get source(): number {
    return this.sources[this.sources.length - 1]!;
  }

  /** True while no file is known to be missing there. */
  get isWhole(): boolean {
    return this.#rests.size + this.#badPieces.size === 0;
  }

  /**
   * Records a file that did not come: the server is asked for it again after `restMs`, by default later each time. What it has sent before
   * it most likely has: the default holds for that, whatever it says now.
   */
  fileFailed(file: MetainfoFile, nowMs: number, restMs?: number): void {
    const known = this.#rests.get(file.index);
    // Several requests for one file fail together.
    if (known !== undefined && known.untilMs > nowMs) return;
    const failures = (known?.failures ?? 0) + 1;
    const pauseMs = this.#sentFiles.has(file.index) ? backoffMs(failures) : restMs ?? backoffMs(failures);
    this.#rests.set(file.index, { untilMs: nowMs + pauseMs, failures });
  }

  /** Lets the server be asked again immediately: our own side refused, which says nothing about the server. */
  forgive(): void {
    this.dueMs = 0;
    this.failures = 0;
    this.#rests.clear();
  }

  /** Records that the server sends the file. */
  fileCame(file: MetainfoFile): void {
    this.#rests.delete(file.index);
    this.#sentFiles.add(file.index);
  }

  /**
   * Records a bad piece. If it lies inside one file, the server has another version of the file; otherwise nobody knows
   * which of the files differs, and only the piece is left out.
   */
  sentBadPiece(piece: number): void {
    const from = piece * this.#metainfo.pieceLengthBytes;
    const end = from + this.#metainfo.pieceLengthBytes;
    const files = this.#metainfo.files.filter((file) =>
      !file.padding && file.sizeBytes > 0 && file.offset < end && file.offset + file.sizeBytes > from
    );
    this.#badPieces.add(piece);
    if (files.length === 1) this.#badFiles.add(files[0]!.index);
    this.isBarred ||= this.#badPieces.size >= MAX_BAD_PIECES || this.offer(-Infinity).have.count === 0;
  }

  /** The pieces that may be asked of it at this moment, and until when that holds, monotonic ms. */
  offer(nowMs: number): { have: Bitfield; untilMs: number } {
    const { files, pieceCount } = this.#metainfo;
    const have = Bitfield.allSet(pieceCount);
    let untilMs = Infinity;
    for (const piece of this.#badPieces) have.set(piece, false);
    const missing = new Set(this.#badFiles);
    for (const [file, rest] of this.#rests) {
      if (rest.untilMs <= nowMs || nowMs === -Infinity) continue;
      missing.add(file);
      untilMs = Math.min(untilMs, rest.untilMs);
    }
    for (const file of missing) {
      const { first, end } = piecesOf(this.#metainfo, files[file]!);
      for (let piece = first; piece < end; piece++) have.set(piece, false);
    }
    return { have, untilMs };
  }
}
