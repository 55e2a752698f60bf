/** Finds video streams in Ogg, which mediabunny skips, to report them as left out. */
import type { Track } from "../../model/types.ts";

const HEADER_BYTES = 27;
/** Header type of pages that begin a logical stream (RFC 3533, section 6). */
const BEGINS = 2;
/** First bytes of the first packet, by video codec. */
const PICTURES: Readonly<Record<string, string>> = {
  "\x80theora": "Theora",
  "BBCD\0": "Dirac",
  "\x01video\0": "OGM video",
  "OVP80": "VP8",
};

/** The video streams that begin in `head`, the first bytes of the file. */
export function oggPictures(head: Uint8Array): Track[] {
  const tracks: Track[] = [];
  const text = (at: number, length: number) => String.fromCharCode(...head.subarray(at, at + length));
  for (let at = 0; at + HEADER_BYTES <= head.length && text(at, 4) === "OggS";) {
    if ((head[at + 5]! & BEGINS) === 0) break;
    const segments = head[at + 26]!;
    const body = at + HEADER_BYTES + segments;
    const codecId = Object.entries(PICTURES).find(([magic]) => text(body, magic.length) === magic)?.[1];
    if (codecId !== undefined) {
      tracks.push({
        id: tracks.length + 2,
        kind: "video",
        codec: "other",
        codecId,
        language: null,
        isDefault: true,
        codecPrivate: null,
        width: null,
        height: null,
        sampleRate: null,
        channels: null,
      });
    }
    at = body;
    for (let i = 0; i < segments; i++) at += head[body - segments + i] ?? 0;
  }
  return tracks;
}
