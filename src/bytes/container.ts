/** Tells containers by their first bytes; file names lie. */

import { adtsFrame, type AudioFrameSyntax, frameChain, id3TagBytes, mpegAudioFrame } from "./audio-frames.ts";

/** Containers with a reader; `mp3` and `aac` are bare frames, with tags around them or not. */
export type Container = "mp4" | "matroska" | "mpegts" | "mp3" | "aac" | "flac" | "ogg" | "wav";

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

/** A file cut in the middle begins with the rest of a frame, at most this, bytes. */
const MAX_FIRST_REST_BYTES = 1728;
/** So many frame headers in a row are no chance. */
const FRAMES_WANTED = 3;

/** Whether `head` is frames from its first byte on, or behind the rest of one to its end. */
function looksLikeFrames(head: Uint8Array, syntax: AudioFrameSyntax): boolean {
  for (let first = 0; first <= MAX_FIRST_REST_BYTES && first < head.length; first++) {
    if (head[first] !== 0xff) continue;
    const { frames, end } = frameChain(head, first, syntax, Infinity);
    const toEnd = end + 4 > head.length;
    if (first === 0 ? frames >= FRAMES_WANTED || (frames > 1 && toEnd) : frames >= FRAMES_WANTED && toEnd) return true;
  }
  return false;
}

const ascii = (bytes: Uint8Array, at: number, length: number) =>
  String.fromCharCode(...bytes.subarray(at, at + length));

function sniffAudio(head: Uint8Array): Container | null {
  const tag = id3TagBytes(head, 0);
  // Behind a tag that is longer than the head it can be FLAC or AAC as well: the reader of MP3 looks.
  if (tag > 0) return (tag < head.length ? sniffAudio(head.subarray(tag)) : null) ?? "mp3";
  switch (ascii(head, 0, 4)) {
    case "fLaC":
      return "flac";
    case "OggS":
      return "ogg";
    case "RIFF":
    case "RF64":
      return ascii(head, 8, 4) === "WAVE" ? "wav" : null;
  }
  if (looksLikeFrames(head, mpegAudioFrame)) return "mp3";
  return looksLikeFrames(head, adtsFrame) ? "aac" : null;
}

/** The container that begins with `head` (`SNIFF_BYTES` of it, or all of a shorter file); null when it is none of ours. */
export function sniffContainer(head: Uint8Array): Container | null {
  if (head.length >= 8) {
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    if (view.getUint32(0) === EBML_MAGIC) return "matroska";
    if (FIRST_BOXES.has(String.fromCharCode(head[4]!, head[5]!, head[6]!, head[7]!))) return "mp4";
  }
  return looksLikeTransportStream(head) ? "mpegts" : sniffAudio(head);
}
