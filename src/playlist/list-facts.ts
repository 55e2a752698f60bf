/** Summarises an M3U list, to show a user what was pasted. */
import { groupOf } from "./entry.ts";
import { groupsOf } from "./group-names.ts";
import { readM3u } from "./m3u/read.ts";

/** Most entries read: lists keep groups together, so the first thousands name nearly all. */
const MAX_ENTRIES = 20_000;
/** Most bytes read, packed or not. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Most groups returned. */
const MAX_CATEGORIES = 100;
/** Longest name, characters: as long as titles in the playlist. */
const MAX_NAME_CHARS = 1000;
/** Most names returned. */
const MAX_NAMES = 1000;

/**
 * Reads the names of entries and groups of the list in `body`, in their order, each group once (`group-title`, where `;`
 * separates several, else `#EXTGRP`). Returns null when no entry can be read. If the list breaks off,
 * returns what arrived. `url` is its address.
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
      for (const name of groupsOf(groupOf(event.entry))) {
        if (categories.size === MAX_CATEGORIES) break;
        categories.add(shortCopy(name));
      }
      if (names.length === MAX_NAMES && categories.size === MAX_CATEGORIES) break;
    }
  } catch {
    // Damaged, too large or no list at all: the result depends only on whether any entry was read.
  }
  return names.length === 0 ? null : { entries: names, categories: [...categories] };
}

/** A shortened copy of `text` in its own memory: a substring would keep the whole line alive. */
function shortCopy(text: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(text.slice(0, MAX_NAME_CHARS)));
}
