/** Finds out when an Ogg stream ends, from its last page (RFC 3533, section 6). */
import type { ByteSource } from "../../../bytes/source.ts";
import type { Track } from "../../model/types.ts";
import { opusPreSkipS } from "./opus.ts";

/** How much of the end is searched, bytes: 70,000 hold a whole page, whose maximum is 65,307; more if pages of other streams fill the end. */
const TAIL_BYTES = [70_000, 1_000_000];
const HEADER_BYTES = 27;
const MAGIC = [0x4f, 0x67, 0x67, 0x53];
/** Granule positions of Opus count at this rate, whatever the rate of the recording. */
const OPUS_RATE = 48000;
/** `granule_position` of pages on which no packet ends. */
const NONE = -1n;

/** End of the stream `serial`, s; null when the end of the file has no page of that stream. */
export async function oggEndS(
  source: ByteSource,
  serial: number,
  track: Track,
  signal: AbortSignal,
): Promise<number | null> {
  for (const bytes of TAIL_BYTES) {
    const from = Math.max(0, source.sizeBytes - bytes);
    const granule = lastGranule(await source.read(from, source.sizeBytes - from, { signal }), serial);
    if (granule !== null) {
      const isOpus = track.codec === "opus";
      const preSkipS = isOpus ? opusPreSkipS(track.codecPrivate) : 0;
      return granule / (isOpus ? OPUS_RATE : track.sampleRate ?? OPUS_RATE) - preSkipS;
    }
    if (from === 0) break;
  }
  return null;
}

function lastGranule(tail: Uint8Array, serial: number): number | null {
  const view = new DataView(tail.buffer, tail.byteOffset, tail.byteLength);
  for (let at = tail.length - HEADER_BYTES; at >= 0; at--) {
    if (!MAGIC.every((byte, i) => tail[at + i] === byte) || view.getUint32(at + 14, true) !== serial) continue;
    const granule = view.getBigInt64(at + 6, true);
    if (granule !== NONE) return Number(granule);
  }
  return null;
}
