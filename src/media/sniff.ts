/** Tells containers by their first bytes; file names lie. */

/** Containers with a reader. */
export type Container = "mp4" | "matroska" | "mpegts";

/** Bytes from the start of the file that `sniffContainer` wants: sync bytes of several of the largest packets. */
export const SNIFF_BYTES = 4096;

/** Box types that files of the MP4 family begin with. */
const FIRST_BOXES: ReadonlySet<string> = new Set([
  "ftyp",
  "styp",
  "moov",
  "mdat",
  "free",
  "skip",
  "wide",
  "pnot",
  "sidx",
  "moof",
  "uuid",
]);

const EBML_MAGIC = 0x1a45dfa3;
const TS_SYNC = 0x47;
/** Plain, with time stamps before (M2TS), with error correction behind (ISO/IEC 13818-1; BDAV; DVB). */
const TS_PACKET_BYTES = [188, 192, 204];
/** So many sync bytes in a row are no chance; fewer do at the end of a short file. */
const SYNCS_WANTED = 5;

function looksLikeTransportStream(head: Uint8Array): boolean {
  for (const packetBytes of TS_PACKET_BYTES) {
    for (let first = 0; first < packetBytes && first < head.length; first++) {
      if (head[first] !== TS_SYNC) continue;
      let syncs = 0;
      let at = first;
      for (; at < head.length && head[at] === TS_SYNC && syncs < SYNCS_WANTED; at += packetBytes) syncs++;
      if (syncs >= SYNCS_WANTED || (syncs > 0 && first <= 4 && at >= head.length)) return true;
    }
  }
  return false;
}

/** The container that begins with `head` (`SNIFF_BYTES` of it, or all of a shorter file); null when it is none of ours. */
export function sniffContainer(head: Uint8Array): Container | null {
  if (head.length >= 8) {
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    if (view.getUint32(0) === EBML_MAGIC) return "matroska";
    if (FIRST_BOXES.has(String.fromCharCode(head[4]!, head[5]!, head[6]!, head[7]!))) return "mp4";
  }
  return looksLikeTransportStream(head) ? "mpegts" : null;
}
