/** The fonts among the attachments of a Matroska file: where they are. Their own bytes are not read. */
import type { ByteSource } from "../../../bytes/source.ts";
import { turnWhenDue } from "../../../bytes/turn.ts";
import { ByteWindow } from "../../source/byte-window.ts";
import type { AttachedFont, AttachedFonts } from "../../model/types.ts";
import { type ElementHeader, MAX_HEADER_BYTES, readHeader, text } from "./ebml.ts";
import { ID } from "./ids.ts";

/** Attachments that are looked at: each may cost a piece of the swarm. Films with a font per sign have some 60. */
const MAX_ATTACHMENTS = 200;
/** Elements of one attachment: it has six. */
const MAX_FIELDS = 32;
/** Fonts that are offered, and their bytes: a player holds them all in memory. Whole films have 20 to 60 MB of them. */
const MAX_FONTS = 128;
const MAX_FONTS_BYTES = 64 * 1024 * 1024;
/** Largest font, bytes: those of Chinese and Japanese have 10 to 25 MB. */
const MAX_FONT_BYTES = 32 * 1024 * 1024;
/** Longest name or type, bytes. */
const MAX_TEXT_BYTES = 1024;
/** Longest name that is kept, characters. */
const MAX_NAME = 200;
/** One read, bytes: what stands before the bytes of a font. */
const CHUNK_BYTES = 1024;

const FONT_TYPE = /font|truetype|opentype|sfnt/i;
const FONT_NAME = /\.(?:ttf|otf|ttc|otc|woff2?)$/i;

/** What finds the fonts of attachments whose element begins at `at`. */
export function fontsAt(at: number): (source: ByteSource, signal: AbortSignal) => Promise<AttachedFonts> {
  return async (source, signal) => {
    const fonts: AttachedFont[] = [];
    let leftOut = 0;
    let bytes = 0;
    const window = new ByteWindow(source, at, { chunkBytes: CHUNK_BYTES, signal });
    const all = await bodyOf(window);
    if (all?.id !== ID.ATTACHMENTS) return { fonts, leftOut };
    const end = Math.min(all.end, source.sizeBytes);
    for (let n = 0; n < MAX_ATTACHMENTS && window.position < end; n++) {
      await turnWhenDue(signal);
      const file = await bodyOf(window);
      // What reaches over the end is cut off, and is no font.
      if (file === null || file.end > end) break;
      const font = file.id === ID.ATTACHED_FILE ? await fontIn(window, file.end) : null;
      window.seek(file.end);
      if (font === null) continue;
      if (fonts.length >= MAX_FONTS || font.sizeBytes > MAX_FONT_BYTES || bytes + font.sizeBytes > MAX_FONTS_BYTES) {
        leftOut++;
        continue;
      }
      bytes += font.sizeBytes;
      fonts.push(font);
    }
    return { fonts, leftOut };
  };
}

/** Goes into the element at the window's position; null if it has no size or is damaged. */
async function bodyOf(window: ByteWindow): Promise<{ readonly id: number; readonly end: number } | null> {
  await window.need(MAX_HEADER_BYTES);
  const header: ElementHeader | string = readHeader(window.bytes, window.at, window.bytes.length);
  if (typeof header === "string" || header.sizeBytes === null) return null;
  window.at = header.body;
  return { id: header.id, end: window.position + header.sizeBytes };
}

/** The attachment that ends at `end`, if it is a font. */
async function fontIn(window: ByteWindow, end: number): Promise<AttachedFont | null> {
  let name = "";
  let type = "";
  let place: { readonly offset: number; readonly sizeBytes: number } | null = null;
  for (let n = 0; n < MAX_FIELDS && window.position < end; n++) {
    const field = await bodyOf(window);
    if (field === null || field.end > end) break;
    const sizeBytes = field.end - window.position;
    if (field.id === ID.FILE_DATA) place = { offset: window.position, sizeBytes };
    else if ((field.id === ID.FILE_NAME || field.id === ID.FILE_MEDIA_TYPE) && sizeBytes <= MAX_TEXT_BYTES) {
      if (!await window.need(sizeBytes)) break;
      const value = text(window.bytes.subarray(window.at, window.at + sizeBytes));
      if (field.id === ID.FILE_NAME) name = value.slice(0, MAX_NAME);
      else type = value;
    }
    window.seek(field.end);
    // Everything else usually stands before the bytes; what follows them would have to be fetched from behind them.
    if (place !== null && (name !== "" || type !== "")) break;
  }
  if (place === null || place.sizeBytes === 0) return null;
  return FONT_TYPE.test(type) || FONT_NAME.test(name) ? { name, ...place } : null;
}
