/** Segments of HLS encrypted with AES-128, decrypted as they come. */
import { concatBytes } from "../bytes/hex.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import type { SegmentKey } from "../content/hls-playlist.ts";
import { MillraceError } from "../errors.ts";

const BLOCK_BYTES = 16;
const KEY_BYTES = 16;
/** Decrypted at once, bytes: each step is two calls of WebCrypto. */
const STEP_BYTES = 64 * 1024;
/** Keys remembered: a playlist names the present one and the next. */
const MAX_KEYS = 4;

/** Opens the address of a key. */
export type OpenKey = (url: string) => Promise<{ readonly body: ReadableStream<Uint8Array> }>;

/** The keys of one playlist. */
export class SegmentKeys {
  readonly #open: OpenKey;
  /** By address, the one fetched longest ago first. */
  readonly #known = new Map<string, CryptoKey>();

  constructor(open: OpenKey) {
    this.#open = open;
  }

  /** `chunks` decrypted. Throws `bad_media` when they are not what the key encrypted, and as `OpenKey` does. */
  async *decrypted(chunks: AsyncIterable<Uint8Array>, { url, iv }: SegmentKey): AsyncGenerator<Uint8Array, void> {
    const key = this.#known.get(url) ?? await this.#fetch(url);
    let before: Uint8Array<ArrayBuffer> = iv;
    let held = new Uint8Array();
    for await (const chunk of chunks) {
      held = concatBytes([held, chunk]);
      // The last block holds the padding, and may be this one.
      const bytes = Math.floor((held.length - 1) / BLOCK_BYTES) * BLOCK_BYTES;
      if (bytes < STEP_BYTES) continue;
      const blocks = held.slice(0, bytes);
      const last = blocks.slice(-BLOCK_BYTES);
      // WebCrypto wants padding at the end of all that it decrypts: nothing, encrypted, is a block of it.
      const padding = await crypto.subtle.encrypt({ name: "AES-CBC", iv: last }, key, new Uint8Array());
      yield await decrypt(concatBytes([blocks, new Uint8Array(padding)]), key, before);
      before = last;
      held = held.slice(bytes);
    }
    if (held.length > 0) yield await decrypt(held, key, before);
  }

  async #fetch(url: string): Promise<CryptoKey> {
    const wrong = () => new MillraceError("bad_media", "the key of an HLS segment is not 16 bytes long");
    const bytes = await readBounded((await this.#open(url)).body, KEY_BYTES, wrong);
    if (bytes.length !== KEY_BYTES) throw wrong();
    const key = await crypto.subtle.importKey("raw", bytes.slice(), "AES-CBC", false, ["encrypt", "decrypt"]);
    this.#known.set(url, key);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KEYS) break;
      this.#known.delete(oldest);
    }
    return key;
  }
}

async function decrypt(
  bytes: Uint8Array<ArrayBuffer>,
  key: CryptoKey,
  iv: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  try {
    return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-CBC", iv }, key, bytes));
  } catch (cause) {
    throw new MillraceError("bad_media", "an HLS segment cannot be decrypted with the key that its playlist names", {
      cause,
    });
  }
}
