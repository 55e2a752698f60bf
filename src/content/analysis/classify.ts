/** Classifies a body by its first bytes; its sender's label counts only if they show nothing. */
import { CONTAINERS, sniffContainer } from "../../bytes/container.ts";
import { sniffForeign } from "../../bytes/foreign-container.ts";
import { toHex } from "../../bytes/hex.ts";
import { mimeTypeOf } from "../file-choice.ts";

/** Bytes from the start that distinguish media from anything else. */
export const CLASSIFY_BYTES = 4096;

/** Kinds of bodies that analysis distinguishes. */
export type BodyKind = "transport_file" | "gzip" | "m3u" | "media";

/** First bytes of media formats in hexadecimal, besides those that `sniffContainer` and `sniffForeign` know. */
const MEDIA_STARTS: readonly RegExp[] = [
  // ID3 tags before MP3 and AAC.
  /^4944330[2-4]/,
  // MPEG video sequence (ISO/IEC 13818-2).
  /^000001b3/,
];
/** A dictionary that begins with a key: BEP 3. */
const BENCODED = /^d[1-9]\d{0,2}:/;
const LIST_TYPE = /^(?:audio|application)\/(?:x-)?(?:mpegurl|vnd\.apple\.mpegurl)\b/i;
const MEDIA_TYPE = /^(?:audio|video)\//i;
const MARKUP = /^\s*<(?:!doctype|html|\?xml|svg|mpd)/i;

/**
 * Text of `head`, which may end within a character: UTF-16 if a byte order mark or zero bytes show it, UTF-8, or else
 * Windows-1252.
 */
export function headText(head: Uint8Array): string {
  const [first, second] = head;
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) {
    return new TextDecoder("utf-16le").decode(head);
  }
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0)) {
    return new TextDecoder("utf-16be").decode(head);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
  } catch {
    return new TextDecoder("windows-1252").decode(head);
  }
}

/**
 * The kind of the body that begins with `head` (`CLASSIFY_BYTES` of it, or all); `type` and `path` are its content type
 * and the path of its address. null for anything that is no content.
 */
export function classifyBody(head: Uint8Array, type: string, path: string): BodyKind | null {
  const start = head.subarray(0, 16);
  const startHex = toHex(start);
  if (BENCODED.test(String.fromCharCode(...start))) return "transport_file";
  if (head[0] === 0x1f && head[1] === 0x8b) return "gzip";
  const isKnown = sniffContainer(head) !== null || sniffForeign(head) !== null;
  if (isKnown || MEDIA_STARTS.some((media) => media.test(startHex))) return "media";
  const text = headText(head).trimStart();
  if (/^#EXTM3U\b/i.test(text) || /^#EXTINF:/im.test(text)) return "m3u";
  if (MARKUP.test(text) || head.length === 0) return null;
  const isList = LIST_TYPE.test(type) || /\.m3u8?(?:\.gz)?$/i.test(path);
  if (isList && /^(?!#)[^\s].*$/m.test(text) && !text.includes("\0")) return "m3u";
  // Streams are joined in the middle of a frame, so that their bytes may say nothing.
  return MEDIA_TYPE.test(type) && !LIST_TYPE.test(type) ? "media" : null;
}

/** MIME type of the media that begin with `head`, from the container, else the sender's `type`, else the name. */
export function mediaMime(head: Uint8Array, type: string, path: string): string {
  const container = sniffContainer(head);
  const said = type.split(";")[0]!.trim().toLowerCase();
  // One container has several types: sound alone, WebM.
  const named = MEDIA_TYPE.test(said) ? said : mimeTypeOf(path);
  if (container === null) return MEDIA_TYPE.test(named) ? named : sniffForeign(head)?.mime ?? named;
  const { mime, aliases } = CONTAINERS[container];
  return aliases.test(named) ? named : mime;
}

/** Some servers state a length beyond any file when there is no end. */
const MAX_FILE_BYTES = 2 ** 50;

/**
 * Whether media without an end follow `head`. A length means no, unless it is absurd or the sender calls itself a radio
 * station (`icy-` fields); without a length the container decides.
 */
export function isEndless(head: Uint8Array, headers: Headers): boolean {
  const length = headers.get("content-length");
  if (headers.has("icy-metaint") || headers.has("icy-br")) return true;
  if (length !== null && Number(length) < MAX_FILE_BYTES) return false;
  switch (sniffContainer(head)) {
    case "mp4":
      return false;
    case "matroska":
      return hasOpenSegment(head);
    default:
      return true;
  }
}

/** True when the Segment has the unknown size that live muxers write: RFC 8794, section 6.2. */
function hasOpenSegment(head: Uint8Array): boolean {
  const header = elementSize(head, 4);
  if (header === null || header.size === null) return false;
  const segment = header.end + header.size;
  return segment + 12 <= head.length && elementSize(head, segment + 4)?.size === null;
}

/** The variable-size integer at `at`, and where it ends; its size is null when it is the unknown one. */
function elementSize(bytes: Uint8Array, at: number): { size: number | null; end: number } | null {
  const first = bytes[at];
  if (first === undefined || first === 0) return null;
  const length = Math.clz32(first) - 23;
  let value = first & (0xff >> length);
  let isUnknown = value === 0xff >> length;
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i] ?? 0;
    value = value * 256 + byte;
    isUnknown &&= byte === 0xff;
  }
  return { size: isUnknown ? null : value, end: at + length };
}
