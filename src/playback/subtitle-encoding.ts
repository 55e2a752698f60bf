/** Decides in which encoding a file of subtitles is written: the language in its name chooses, else statistics do. */
import { concatBytes } from "../bytes/hex.ts";
import { utf16Name } from "../bytes/text.ts";
import { asUtf8 } from "../bytes/as-utf8.ts";

/** The one encoding besides UTF-8 that subtitles in a language are written in; languages with several are left out. */
const BY_LANGUAGE: Readonly<Record<string, string>> = {
  ar: "windows-1256",
  bs: "windows-1250",
  cs: "windows-1250",
  el: "windows-1253",
  fa: "windows-1256",
  he: "windows-1255",
  hr: "windows-1250",
  hu: "windows-1250",
  ja: "shift_jis",
  ko: "euc-kr",
  lt: "windows-1257",
  lv: "windows-1257",
  pl: "windows-1250",
  ro: "windows-1250",
  sk: "windows-1250",
  sl: "windows-1250",
  sq: "windows-1250",
  th: "windows-874",
  tr: "windows-1254",
  ur: "windows-1256",
};

/** True unless wrong bytes are as many as letters beyond ASCII: one that was cut off does not make it another encoding. */
function isUtf8(bytes: Uint8Array): boolean {
  const text = new TextDecoder().decode(bytes);
  const bad = text.split("\uFFFD").length - 1;
  return bad === 0 || (text.match(/[\u0080-\uFFFC]/g) ?? []).length > bad;
}

/** The file `bytes` in UTF-8. `language`: that of its name, BCP 47; null: unknown. */
export async function subtitlesAsUtf8(bytes: Uint8Array, language: string | null): Promise<Uint8Array> {
  if (utf16Name(bytes) !== null || isUtf8(bytes)) return bytes;
  const name = BY_LANGUAGE[language?.split("-")[0] ?? ""];
  if (name !== undefined) {
    try {
      return new TextEncoder().encode(new TextDecoder(name, { fatal: true }).decode(bytes));
    } catch {
      // Some bytes mean nothing there, so it is another encoding.
    }
  }
  const parts: Uint8Array[] = [];
  for await (const part of asUtf8(chunkOf(bytes))) parts.push(part);
  return concatBytes(parts);
}

async function* chunkOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}
