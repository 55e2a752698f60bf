/** What makes two items the same channel or the same content. */
import { toHex } from "../bytes/hex.ts";

/** What the group of an item depends on. */
export interface Named {
  readonly title: string;
  readonly tvgId: string;
}

/** Where an item's content is. */
export interface Located {
  readonly infohash: string;
  readonly contentId: string | null;
  readonly url: string | null;
  readonly title: string;
}

/** Lower-case letters and digits of `name` alone: writing, spaces and punctuation differ from list to list. */
export function normalizedName(name: string): string {
  return name.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}+]+/gu, "");
}

/** Items that are one channel have the same group: by `tvg-id`, else by normalised name. */
export function mediaGroup({ title, tvgId }: Named): string {
  const id = tvgId.trim().toLowerCase();
  return id !== "" ? `id:${id}` : `name:${normalizedName(title)}`;
}

/**
 * Stable hashes of an item's content, hexadecimal: of its infohash, else content id, else URL, else (an item that is only
 * searched for) normalised title, written `kind:value`. `hash` is SHA-1 of it, `hashV2` SHA-256.
 */
export async function contentHashes(item: Located): Promise<{ hash: string; hashV2: string }> {
  const text = item.infohash !== ""
    ? `infohash:${item.infohash}`
    : item.contentId !== null
    ? `content_id:${item.contentId}`
    : item.url !== null
    ? `url:${item.url}`
    : `title:${normalizedName(item.title)}`;
  const bytes = new TextEncoder().encode(text);
  const digest = async (name: string) => toHex(new Uint8Array(await crypto.subtle.digest(name, bytes)));
  return { hash: await digest("SHA-1"), hashV2: await digest("SHA-256") };
}
