/** The file that a player continues with: its beginning is fetched while the end of the present one plays. */
import type { Swarm, SwarmReader } from "../swarm/types.ts";
import { compareNatural } from "../metainfo/natural-order.ts";
import type { Metainfo, MetainfoFile } from "../metainfo/types.ts";
import { fetchIndexTail } from "./index-tail.ts";

/** Bytes of its beginning: as many as a session prebuffers. */
const HEAD_BYTES = 1024 * 1024;

/**
 * Of the files `indexes` the one whose name comes next after `file`'s, compared naturally (`E2` before `E10`); else
 * the first of the others by name. Null when there is none.
 */
export function nextFile(metainfo: Metainfo, file: MetainfoFile, indexes: readonly number[]): MetainfoFile | null {
  const compare = (a: MetainfoFile, b: MetainfoFile) => compareNatural(a.path, b.path) || a.index - b.index;
  const others = metainfo.files
    .filter((other) => indexes.includes(other.index) && other.index !== file.index)
    .filter((other) => !other.padding && other.sizeBytes > 0)
    .sort(compare);
  return others.find((other) => compare(other, file) > 0) ?? others[0] ?? null;
}

/** Fetches the beginning of `file`, and the end where its index may be, until `signal` fires. Never rejects. */
export async function fetchBeginning(swarm: Swarm, file: MetainfoFile, signal: AbortSignal): Promise<void> {
  let reader: SwarmReader | null = null;
  try {
    reader = swarm.openReader(file.index, { readAheadBytes: 0 });
    const head = reader.read(0, Math.min(HEAD_BYTES, file.sizeBytes), { signal });
    if (file.sizeBytes > HEAD_BYTES) fetchIndexTail(swarm, file, signal);
    await head;
  } catch {
    // Only to have the bytes here: the player's session reads them again and gets the errors.
  } finally {
    reader?.close();
  }
}
