/** Pictures that callers send along with an item. */
import { API_CODES, ApiError } from "./codes.ts";

/** Largest logo, bytes: it stands in listings as a `data:` URL. */
export const MAX_LOGO_BYTES = 128 * 1024;

/** First bytes of the formats that every client shows, as latin-1; SVG is left out, since it may carry scripts. */
const FORMATS: readonly (readonly [RegExp, string])[] = [
  // deno-lint-ignore no-control-regex
  [/^\x89PNG\r\n\x1a\n/, "image/png"],
  [/^\xff\xd8\xff/, "image/jpeg"],
  [/^GIF8[79]a/, "image/gif"],
  [/^RIFF[\s\S]{4}WEBP/, "image/webp"],
];

/** `file` as a `data:` URL, typed by its bytes. Throws code 3 for anything but PNG, JPEG, GIF and WebP. */
export async function readLogo(file: File): Promise<string> {
  let text = "";
  for (const byte of new Uint8Array(await file.arrayBuffer())) text += String.fromCharCode(byte);
  const type = FORMATS.find(([start]) => start.test(text))?.[1];
  if (type === undefined) {
    throw new ApiError(API_CODES.invalidParameter, "invalid parameter: logo_file: PNG, JPEG, GIF or WebP is expected");
  }
  return `data:${type};base64,${btoa(text)}`;
}
