/** What an M3U list says of itself, for telling people what they pasted. */
import { readM3u } from "./m3u/read.ts";

/** Entries read at most: groups stand together, so that the first thousands name nearly all. */
const MAX_ENTRIES = 20_000;
/** Bytes read at most, packed or not. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Groups told at most. */
const MAX_CATEGORIES = 100;
/** Longest name, characters: as long as titles in the playlist. */
const MAX_NAME_CHARS = 1000;
/** Names told at most. */
const MAX_NAMES = 1000;

/**
 * Names of the entries and of the groups of the list in `body`, groups each once, in their order (`group-title`, where `;`
 * separates several, else `#EXTGRP`); null when no entry can be read. What breaks off counts as far as it came. `url` is its address.
 */
export async function readListFacts(
  body: ReadableStream<Uint8Array>,
  url: string,
  signal: AbortSignal,
  isUnpacked = false,
): Promise<{ readonly entries: readonly string[]; readonly categories: readonly string[] } | null> {
  const names: string[] = [];
  const categories = new Set<string>();
  const bytes = { maxBytes: MAX_BYTES, maxUnpackedBytes: MAX_BYTES, isUnpacked };
  const options = { baseUrl: url, signal, maxEntries: MAX_ENTRIES, ...bytes };
  try {
    for await (const event of readM3u(body, options)) {
      if (event.kind !== "entry") continue;
      if (names.length < MAX_NAMES) names.push(shortCopy(event.entry.title));
      for (const name of (event.entry.attributes["group-title"] || event.entry.group).split(";", MAX_CATEGORIES)) {
        if (categories.size === MAX_CATEGORIES) break;
        if (name.trim() !== "") categories.add(shortCopy(name.trim()));
      }
      if (names.length === MAX_NAMES && categories.size === MAX_CATEGORIES) break;
    }
  } catch {
    // Damaged, too large or no list at all: the entries tell.
  }
  return names.length === 0 ? null : { entries: names, categories: [...categories] };
}

/** `text` cut, in memory of its own: a part of a line keeps the whole line. */
function shortCopy(text: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(text.slice(0, MAX_NAME_CHARS)));
}
