/** Fetches parts of a file before a player asks for them. */
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
const TS_NAME = /\.(ts|m2ts|mts|m2t|tp|trp)$/i;

/** A file that plays. */
export interface PlayedFile {
  readonly swarm: Swarm;
  readonly file: MetainfoFile;
  readonly output: OutputKind;
}

/**
 * Fetches the first `headBytes` in one go, and the end if the playlist needs it. The container's reader and the
 * prebuffer ask for one place after the other, and the peers would pause a round trip after each. Returns a function
 * that ends the fetching; until then, bytes under way are not requested twice. Never throws.
 */
export function fetchHead({ swarm, file, output }: PlayedFile, headBytes: number): () => void {
  const readers: SwarmReader[] = [];
  const fetch = (offset: number, length: number, readAheadBytes: number) => {
    try {
      const reader = swarm.openReader(file.index, { readAheadBytes });
      readers.push(reader);
      // Only to have the bytes here: a reader that needs them reads them and gets the errors.
      reader.read(offset, length, { signal: new AbortController().signal }).catch(() => {});
    } catch {
      // No reader is free: what is needed will be asked for.
    }
  };
  if (headBytes > 0) fetch(0, 1, headBytes - 1);
  if (output === "hls" && TS_NAME.test(file.name)) {
    const length = Math.min(LAST_TIMES_BYTES, file.sizeBytes);
    fetch(file.sizeBytes - length, length, 0);
  }
  return () => {
    for (const reader of readers) reader.close();
  };
}

/**
 * Has the end of a transport stream, or of what one is made from (`isSized`: one whose length is known), fetched before
 * the player looks at it. Never rejects.
 */
export async function fetchEnd(
  { swarm, file, output }: PlayedFile,
  isSized: boolean,
  signal: AbortSignal,
): Promise<void> {
  const isTs = output === "file" ? TS_NAME.test(file.name) : output === "ts" && isSized;
  if (!isTs) return;
  let reader: SwarmReader | null = null;
  try {
    reader = swarm.openReader(file.index, { readAheadBytes: 0 });
    const from = Math.max(0, file.sizeBytes - END_BYTES);
    await reader.read(from, file.sizeBytes - from, { signal });
  } catch {
    // As above.
  } finally {
    reader?.close();
  }
}
