/** Pictures that callers send along with an item: kept as `data:` URLs, listed by the address of `get_channel_icon`. */
import { API_CODES, ApiError } from "./codes.ts";
import { pictureType } from "./picture.ts";

/** Largest logo, bytes. */
export const MAX_LOGO_BYTES = 128 * 1024;

/** `file` as a `data:` URL, typed by its bytes. Throws code 3 for anything but PNG, JPEG, GIF and WebP. */
export async function readLogo(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const type = pictureType(bytes);
  if (type === null) {
    throw new ApiError(API_CODES.invalidParameter, "invalid parameter: logo_file: PNG, JPEG, GIF or WebP is expected");
  }
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `data:${type};base64,${btoa(text)}`;
}

/** Address of an item's own picture, up to the item's id; `ownUrl` is the engine's address as the caller knows it. */
export function logoUrl(ownUrl: string): string {
  return `${ownUrl}/server/api?method=get_channel_icon&id=`;
}

/** Bytes of a `data:` URL that `readLogo` made; null for other addresses. */
export function logoBytes(url: string): Uint8Array | null {
  const base64 = /^data:image\/[a-z]+;base64,([A-Za-z0-9+/=]*)$/.exec(url)?.[1];
  return base64 === undefined ? null : Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}
