/** A title for content that does not state its name. */
import { percentDecoded } from "../../bytes/percent.ts";

/** Names that mean nothing: the folder around them means more. */
const NAMELESS = /^(?:index|playlist|master|manifest|chunklist|stream|live|video|mono|play|tracks?[-\w]*|\d{1,2})$/i;
/** Endings that a name may have several of. */
const ENDING =
  /\.(?:torrent|m3u8?|gz|ts|mts|m2ts|mp4|m4v|mov|mkv|webm|avi|flv|mpe?g|vob|asf|mp3|m4a|aac|e?ac3|ec3|flac|ogg|wav|wm[av]|ape)$/i;
const MAX_TITLE_CHARS = 500;

/** A title from `Content-Disposition` (RFC 6266) or the name of a station; null when neither is there. */
export function headerTitle(headers: Headers): string | null {
  const disposition = headers.get("content-disposition") ?? "";
  const extended = /filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition)?.[1];
  const plain = /filename\s*=\s*(?:"([^"]*)"|([^;\s]+))/i.exec(disposition);
  const name = extended === undefined ? plain?.[1] ?? plain?.[2] : percentDecoded(extended);
  return cleaned(withoutEnding(name ?? "")) ?? cleaned(asUtf8(headers.get("icy-name") ?? ""));
}

/** A title from the address: the last meaningful part of its path, else the host. */
export function addressTitle(address: string): string {
  const url = new URL(address);
  const parts = url.pathname.split("/").filter((part) => part !== "").map((part) =>
    withoutEnding(percentDecoded(part))
  );
  const named = parts.reverse().find((part) => part.trim() !== "" && !NAMELESS.test(part));
  return cleaned(named ?? "") ?? url.host;
}

/** Names of kinds of programmes that a station gives itself. */
export function headerCategories(headers: Headers): string[] {
  const genres = asUtf8(headers.get("icy-genre") ?? "").split(/[,;]/);
  return [...new Set(genres.map((genre) => genre.trim()).filter((genre) => genre !== ""))].slice(0, 20);
}

function withoutEnding(name: string): string {
  let rest = name.slice(0, 4 * MAX_TITLE_CHARS);
  while (ENDING.test(rest)) rest = rest.replace(ENDING, "");
  return rest;
}

/** Header fields are read as latin-1; stations send UTF-8. */
function asUtf8(text: string): string {
  if (!/[\x80-\xff]/.test(text) || /[^\0-\xff]/.test(text)) return text;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(text, (c) => c.charCodeAt(0)));
  } catch {
    return text;
  }
}

function cleaned(text: string): string | null {
  // deno-lint-ignore no-control-regex
  const title = text.replace(/[\x00-\x1f\x7f]+/g, " ").trim().slice(0, MAX_TITLE_CHARS);
  return title === "" ? null : title;
}
