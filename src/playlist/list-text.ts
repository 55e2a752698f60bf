/** The text of a playlist as it is found on the net: compressed or not, in any of the usual encodings. */
import { readBounded } from "../bytes/read-bounded.ts";
import { MillraceError } from "../errors.ts";

/** Largest playlist, bytes, before and after decompression: 100,000 entries are about 30 MB. */
export const MAX_LIST_BYTES = 64 * 1024 * 1024;

/**
 * Text of `bytes`: gzip (RFC 1952) is undone; UTF-16 and UTF-8 are told by their byte order marks; what is not valid
 * UTF-8 is read as Windows-1252, the superset of latin-1 that old lists are in. Throws `too_large` or `invalid_argument`.
 */
export async function decodeListText(bytes: Uint8Array): Promise<string> {
  const plain = bytes[0] === 0x1f && bytes[1] === 0x8b ? await gunzip(bytes) : bytes;
  const [first, second] = plain;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(plain);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(plain);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(plain);
  } catch {
    return new TextDecoder("windows-1252").decode(plain);
  }
}

async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  const tooLarge = () => new MillraceError("too_large", `the playlist unpacks to more than ${MAX_LIST_BYTES} bytes`);
  try {
    const unpacked = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip"));
    return await readBounded(unpacked, MAX_LIST_BYTES, tooLarge);
  } catch (cause) {
    if (cause instanceof MillraceError) throw cause;
    throw new MillraceError("invalid_argument", "invalid playlist: its gzip data is damaged", { cause });
  }
}
