/** Decides which files may go to programs that open playlists of their own accord. */
import { id3TagBytes } from "./audio-frames.ts";
import { type Container, SNIFF_BYTES, sniffContainer } from "./container.ts";
import { sniffForeign } from "./foreign-container.ts";

/** Tags before the media that are skipped; more are no honest file. */
const MAX_TAGS = 4;
/** Containers that are recognised by frames, which may come after other bytes at the beginning. */
const FRAMED: ReadonlySet<Container> = new Set(["mpegts", "mp3", "aac", "ac3"]);
/** The signatures of playlists are no shorter, bytes. */
const TEXT_BYTES = 8;

/**
 * True when a file begins as film or sound and nothing else. mpv, VLC, ffplay and Kodi take a playlist for one whatever
 * its name is, and even if media follows it or a tag precedes it; then they would ask every address in it. `read`
 * returns `length` bytes from `offset` on, fewer at the end.
 */
export async function isKnownMedia(read: (offset: number, length: number) => Promise<Uint8Array>): Promise<boolean> {
  let offset = 0;
  for (let tags = 0; tags <= MAX_TAGS; tags++) {
    const head = await read(offset, SNIFF_BYTES);
    const tag = id3TagBytes(head, 0);
    if (tag === 0) return beginsAsMedia(head);
    offset += tag;
  }
  return false;
}

function beginsAsMedia(head: Uint8Array): boolean {
  const container = sniffContainer(head);
  if (container === null) return sniffForeign(head) !== null;
  return !FRAMED.has(container) || !(isText(head.subarray(0, TEXT_BYTES)) || isTag(head));
}

/** Of printable characters of ASCII, tabs and line ends; a byte order mark may come first. */
function isText(bytes: Uint8Array): boolean {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  return bytes.subarray(start).every((byte) => (byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d));
}

/** "ID3": a tag of an unknown version, which players skip all the same. */
function isTag(head: Uint8Array): boolean {
  return head[0] === 0x49 && head[1] === 0x44 && head[2] === 0x33;
}
