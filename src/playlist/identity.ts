/** What makes two items the same content. */
import { toHex } from "../bytes/hex.ts";

/** Where an item's content is. */
export interface Located {
  readonly infohash: string;
  readonly contentId: string | null;
  readonly url: string | null;
  readonly title: string;
}

/**
 * Stable hashes of an item's content, hexadecimal: of its infohash, else content id, else URL, else (an item that is only
 * searched for) letters and digits of the title, written `kind:value`. `hash` is SHA-1 of it, `hashV2` SHA-256.
 */
export async function contentHashes(item: Located): Promise<{ hash: string; hashV2: string }> {
  const text = item.infohash !== ""
    ? `infohash:${item.infohash}`
    : item.contentId !== null
    ? `content_id:${item.contentId}`
    : item.url !== null
    ? `url:${item.url}`
    : `title:${item.title.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}+]+/gu, "")}`;
  const bytes = new TextEncoder().encode(text);
  const digest = async (name: string) => toHex(new Uint8Array(await crypto.subtle.digest(name, bytes)));
  const [hash, hashV2] = await Promise.all([digest("SHA-1"), digest("SHA-256")]);
  return { hash, hashV2 };
}
