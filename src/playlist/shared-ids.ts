/**
 * Finds the `tvg-id`s of a list that stand on entries of many names: some lists write one id on a whole group, or on all
 * that have no guide. Such an id does not make its entries one channel.
 */
import { channelId, mediaGroup, normalizedName } from "../database/names.ts";

/** With so many names an id is none. A channel has up to three: its own, that of a backup, that in another language. */
const MANY_NAMES = 4;

/** What the ids of an entry are about. */
interface Named {
  readonly title: string;
  readonly tvg_id: string;
}

/** Counts the names of each id of one list. */
export class SharedIds {
  /** Hashes of the first names of each id: an entry of a list of 500,000 costs a few dozen bytes. */
  readonly #names = new Map<string, number | number[]>();
  readonly #shared = new Set<string>();

  /** Notes an entry; its title is the one of the list. Returns its id as `channelId` does. */
  add({ title, tvg_id }: Named): string {
    if (tvg_id === "") return "";
    const id = channelId(tvg_id);
    if (id === "" || this.#shared.has(id)) return id;
    const name = hashOf(normalizedName(title));
    const names = this.#names.get(id);
    if (names === undefined) this.#names.set(id, name);
    else if (typeof names === "number") {
      if (names !== name) this.#names.set(id, [names, name]);
    } else if (!names.includes(name) && names.push(name) === MANY_NAMES) {
      this.#names.delete(id);
      this.#shared.add(id);
    }
    return id;
  }

  /** Ids that are none, as `channelId` returns them. */
  get all(): ReadonlySet<string> {
    return this.#shared;
  }

  /** Key of the channel of an item of this list. */
  mediaGroupOf({ title, tvg_id }: Named): string {
    const isNone = this.#shared.size > 0 && this.#shared.has(channelId(tvg_id));
    return mediaGroup({ title, tvgId: isNone ? "" : tvg_id });
  }
}

/** 32 bits of FNV-1a: two of a handful of names share them once in a billion lists. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}
