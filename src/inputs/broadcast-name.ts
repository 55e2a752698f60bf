/** File names of broadcasts. */
import { trimOf } from "../bytes/trim.ts";
import { toHex } from "../bytes/hex.ts";

/** Longest part of the name that is kept, characters. */
const MAX_CHARS = 60;

/** A file name that stands for `name` alone: the name itself where it is letters, digits, `-` and `_`. */
export async function broadcastFileName(name: string): Promise<string> {
  const plain = name.normalize("NFC").replaceAll(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, MAX_CHARS);
  if (plain === name && /^[a-z0-9_-]+$/.test(plain)) return plain;
  // Names that differ only in ways that file systems ignore, or in the characters left out, get files of their own.
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(name)));
  return `${trimOf(plain, "-") || "broadcast"}-${toHex(digest.subarray(0, 4))}`;
}
