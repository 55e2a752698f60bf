/** Finds a fragment in the middle of a file without knowing where one begins. */
import type { ByteSource } from "../../../bytes/source.ts";
import { viewOf } from "../../../bytes/boxes.ts";
import { looksLikeFragment } from "./fragment-index.ts";

/** Bytes searched in one go. */
const SCAN_BYTES = 256 * 1024;

/**
 * The next fragment at or after `from`, found by its name and its first box; null when none begins in the next
 * `mostBytes`.
 */
export async function scanForFragment(
  source: ByteSource,
  from: number,
  signal: AbortSignal,
  mostBytes = Infinity,
): Promise<number | null> {
  for (let start = from; start + 16 <= source.sizeBytes && start < from + mostBytes; start += SCAN_BYTES) {
    const length = Math.min(SCAN_BYTES + 64, source.sizeBytes - start);
    const bytes = await source.read(start, length, { signal });
    const view = viewOf(bytes);
    for (let at = bytes.indexOf(0x6d, 4); at >= 4 && at + 12 <= length; at = bytes.indexOf(0x6d, at + 1)) {
      if (at - 4 >= SCAN_BYTES || view.getUint32(at) !== 0x6d6f6f66) continue;
      const end = at - 4 + Math.min(view.getUint32(at - 4), length - at + 4);
      if (looksLikeFragment({ type: "moof", view, start: at + 4, end })) return start + at - 4;
    }
  }
  return null;
}
