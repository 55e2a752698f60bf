/** Fetches parts of a file before a player asks for them. */
import type { Clock, Timer } from "../ports.ts";
import type { MetainfoFile } from "../metainfo/types.ts";
import type { Swarm, SwarmReader } from "../swarm/types.ts";
import type { OutputKind } from "./session-base.ts";

/** HLS of a transport stream needs the last time stamps for its playlist: 700 packets of at most 204 bytes. */
const LAST_TIMES_BYTES = 144 * 1024;
/**
 * Players of MPEG TS read its end for the last time stamp (ffmpeg at 250 KB, VLC and Kodi at less) before they show
 * anything of the beginning.
 */
const END_BYTES = 256 * 1024;
/**
 * Of the beginning, while the player is not ready to ask for it: two seconds at 16 Mbit/s. A player of HLS asks for the
 * first segment up to a tenth of a second after the playlist.
 */
const BEGINNING_BYTES = 4 * 1024 * 1024;
/** After the playlist a player asks for the first segment within this, ms. */
const PLAYER_COMES_MS = 5000;
/**
 * A start that takes longer than this until the first bytes have arrived is slow, ms. In a faster one the end comes before
 * what follows the first megabyte, because players look there next.
 */
const FAST_START_MS = 600;
/** In a slow start the end comes after this much media of the beginning, ms, unless the player asks for it. */
const SLOW_YIELD_MS = 2000;
/** Smaller pieces do not yield: the end takes two of them at most, and ffmpeg shows no picture before it has looked there. */
const LARGE_PIECE_BYTES = 1024 * 1024;
const TS_NAME = /\.(ts|m2ts|mts|m2t|tp|trp)$/i;

/** A file that plays. */
export interface PlayedFile {
  readonly swarm: Swarm;
  readonly file: MetainfoFile;
  readonly output: OutputKind;
}

/**
 * Fetches the first bytes of a file in one go, and the end if the playlist needs it. The container's reader and the
 * prebuffer ask for one place after the other, and the peers would pause a round trip after each. Until it ends, bytes
 * under way are not requested twice.
 */
export class HeadFetch {
  readonly #played: PlayedFile;
  readonly #clock: Clock;
  readonly #readers: SwarmReader[] = [];
  #timer: Timer | null = null;
  #isOver = false;

  /**
   * Begins with the first `headBytes`; more for HLS, and in a slow start, where the links would be idle until the player
   * can ask for what comes next. Never throws.
   */
  constructor(played: PlayedFile, headBytes: number, clock: Clock) {
    this.#played = played;
    this.#clock = clock;
    const { file, output } = played;
    const isHls = output === "hls";
    this.#fetch(0, 1, (isHls ? BEGINNING_BYTES : headBytes) - 1);
    if (isHls && TS_NAME.test(file.name)) {
      const length = Math.min(LAST_TIMES_BYTES, file.sizeBytes);
      this.#fetch(file.sizeBytes - length, length, 0);
    }
    if (!isHls) this.#timer = clock.setTimeout(() => this.#fetch(0, 1, BEGINNING_BYTES - 1), FAST_START_MS);
  }

  #fetch(offset: number, length: number, readAheadBytes: number): void {
    if (length > this.#played.file.sizeBytes) return;
    try {
      const reader = this.#played.swarm.openReader(this.#played.file.index, { readAheadBytes });
      this.#readers.push(reader);
      // Only to have the bytes here: a reader that needs them reads them and gets the errors.
      reader.read(offset, length, { signal: new AbortController().signal }).catch(() => {});
    } catch {
      // No reader is free: what is needed will be asked for.
    }
  }

  /** Ends once a player of HLS should have come for the first segment; at once for other outputs. */
  endSoon(): void {
    if (this.#played.output !== "hls") return this.end();
    if (!this.#isOver) this.#timer = this.#clock.setTimeout(() => this.end(), PLAYER_COMES_MS);
  }

  /** Ends it. Idempotent. */
  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    for (const reader of this.#readers) reader.close();
  }
}

/**
 * Has the end of a transport stream, or of what one is made from (`isSized`: one whose length is known), fetched before
 * the player looks at it. `firstMs` is how long the first bytes took. Where that was long a large end yields to
 * the beginning: its piece may take as long as a second of media, and not every player looks there. Never rejects.
 */
export async function fetchEnd(
  { swarm, file, output }: PlayedFile,
  isSized: boolean,
  firstMs: number,
  signal: AbortSignal,
): Promise<void> {
  const isTs = output === "file" ? TS_NAME.test(file.name) : output === "ts" && isSized;
  if (!isTs) return;
  let reader: SwarmReader | null = null;
  try {
    const isLarge = (swarm.metainfo?.pieceLengthBytes ?? LARGE_PIECE_BYTES) >= LARGE_PIECE_BYTES;
    const yieldMs = isLarge && firstMs > FAST_START_MS ? SLOW_YIELD_MS : 0;
    reader = swarm.openReader(file.index, { readAheadBytes: 0, yieldMs });
    const from = Math.max(0, file.sizeBytes - END_BYTES);
    await reader.read(from, file.sizeBytes - from, { signal });
  } catch {
    // As above.
  } finally {
    reader?.close();
  }
}
