/** The containers that the engine reads itself. Files are recognised by their first bytes: names are unreliable. */

import { ac3Frame } from "./ac3-frames.ts";
import { adtsFrame, type AudioFrameSyntax, frameChain, id3TagBytes, mpegAudioFrame } from "./audio-frames.ts";
import { findPackets, PACKET_STRIDES } from "./ts/sync.ts";

/** Facts about a container that hold for every file. */
export interface ContainerFacts {
  /** MIME types by the extensions that promise this container, lower case, without the dot. */
  readonly extensions: Readonly<Record<string, string>>;
  /** MIME type where the name says nothing. */
  readonly mime: string;
  /** Other MIME types in use for it: for sound alone, for WebM. */
  readonly aliases: RegExp;
  /** Its sound is carried only where it may become AAC. */
  readonly asAac?: true;
}

/** Containers with a reader; `mp3`, `aac` and `ac3` (E-AC-3, too) are bare frames, with or without tags. */
export const CONTAINERS = {
  mp4: {
    mime: "video/mp4",
    aliases: /^(?:video|audio)\/(?:mp4|x-m4[av]|quicktime|3gpp)$/,
    extensions: {
      ...{ mp4: "video/mp4", m4v: "video/mp4", f4v: "video/mp4", mov: "video/quicktime", qt: "video/quicktime" },
      ...{ "3gp": "video/3gpp", m4a: "audio/mp4", m4b: "audio/mp4" },
    },
  },
  matroska: {
    mime: "video/x-matroska",
    aliases: /^(?:video|audio)\/(?:webm|x-matroska)$/,
    extensions: { mkv: "video/x-matroska", mk3d: "video/x-matroska", webm: "video/webm", mka: "audio/x-matroska" },
  },
  mpegts: {
    mime: "video/mp2t",
    aliases: /^video\/mp2t$/,
    extensions: {
      ...{ ts: "video/mp2t", tts: "video/mp2t", m2ts: "video/mp2t", mts: "video/mp2t", m2t: "video/mp2t" },
      ...{ trp: "video/mp2t" },
    },
  },
  mp3: {
    mime: "audio/mpeg",
    // After a long ID3 tag it can be any of these.
    aliases: /^audio\/(?:mpeg|mp3|x-mp3|mpeg3|aac|aacp|x-aac|flac|x-flac)$/,
    extensions: { mp3: "audio/mpeg", mp2: "audio/mpeg", mpga: "audio/mpeg" },
  },
  aac: {
    mime: "audio/aac",
    aliases: /^audio\/(?:aac|aacp|x-aac|aac-adts)$/,
    extensions: { aac: "audio/aac" },
  },
  ac3: {
    mime: "audio/ac3",
    aliases: /^audio\/(?:ac3|eac3|vnd\.dolby\.dd-raw|x-ac3)$/,
    extensions: { ac3: "audio/ac3", eac3: "audio/eac3", ec3: "audio/eac3" },
  },
  flac: {
    mime: "audio/flac",
    aliases: /^audio\/(?:flac|x-flac)$/,
    extensions: { flac: "audio/flac" },
    asAac: true,
  },
  ogg: {
    mime: "audio/ogg",
    aliases: /^(?:audio|video|application)\/(?:ogg|opus|vorbis|x-ogg)$/,
    extensions: { ogg: "audio/ogg", oga: "audio/ogg", opus: "audio/ogg", spx: "audio/ogg" },
    asAac: true,
  },
  wav: {
    mime: "audio/wav",
    aliases: /^audio\/(?:wav|x-wav|wave|vnd\.wave)$/,
    extensions: { wav: "audio/wav" },
    asAac: true,
  },
} as const satisfies Readonly<Record<string, ContainerFacts>>;

/** A container with a reader. */
export type Container = keyof typeof CONTAINERS;

/** Bytes from the start of the file that `sniffContainer` needs: several of the largest packets, to find their sync bytes. */
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

function looksLikeTransportStream(head: Uint8Array): boolean {
  const grid = findPackets(head, PACKET_STRIDES, head.length < SNIFF_BYTES);
  // A file begins with a packet or the rest of one.
  return grid !== null && grid.firstAt < grid.strideBytes;
}

/** A file cut in the middle begins with the rest of a frame, at most this long, bytes. */
const MAX_FIRST_REST_BYTES = 1728;
/** First byte of the sync words of MPEG audio and ADTS, and of AC-3. */
const MPEG_SYNC = 0xff;
const AC3_SYNC = 0x0b;
/** This many frame headers in a row are no coincidence; AC-3 needs fewer, as its sync word is longer. */
const FRAMES_WANTED = 3;
const AC3_FRAMES_WANTED = 2;

/** True when frames begin at the first byte of `head`, or after the rest of a cut frame and then reach to its end. */
function looksLikeFrames(
  head: Uint8Array,
  syntax: AudioFrameSyntax,
  sync = MPEG_SYNC,
  wanted = FRAMES_WANTED,
): boolean {
  for (let first = 0; first <= MAX_FIRST_REST_BYTES && first < head.length; first++) {
    if (head[first] !== sync) continue;
    const { frames, end } = frameChain(head, first, syntax, Infinity);
    const toEnd = end + 4 > head.length;
    if (first === 0 ? frames >= wanted || (frames > 1 && toEnd) : frames >= wanted && toEnd) return true;
  }
  return false;
}

const ascii = (bytes: Uint8Array, at: number, length: number) =>
  String.fromCharCode(...bytes.subarray(at, at + length));

function sniffAudio(head: Uint8Array): Container | null {
  const tag = id3TagBytes(head, 0);
  // After a tag longer than the head there may be FLAC or AAC as well: the MP3 reader checks.
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
  if (looksLikeFrames(head, adtsFrame)) return "aac";
  // A frame may be longer than the head: then a whole sync word and a consistent header have to be enough.
  const first = ac3Frame(head, 0);
  const isLong = first !== null && first.sizeBytes >= head.length && head.length === SNIFF_BYTES;
  return isLong || looksLikeFrames(head, ac3Frame, AC3_SYNC, AC3_FRAMES_WANTED) ? "ac3" : null;
}

/** The container that begins with `head` (`SNIFF_BYTES`, or all of a shorter file); null when it is not a known one. */
export function sniffContainer(head: Uint8Array): Container | null {
  if (head.length >= 8) {
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    if (view.getUint32(0) === EBML_MAGIC) return "matroska";
    if (FIRST_BOXES.has(String.fromCharCode(head[4]!, head[5]!, head[6]!, head[7]!))) return "mp4";
  }
  return looksLikeTransportStream(head) ? "mpegts" : sniffAudio(head);
}
