/** The groups that lists write on their entries, as categories of items. */
import { sql } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import type { Store } from "../database/store.ts";

/** Most names that are kept: as many as categories are listed. More keep the spelling of their list. */
const MAX_NAMES = 5000;
/** Names looked up between two turns: each is one search in the index of categories. */
const LOOKED_UP_AT_ONCE = 200;

/** The parts of a group: lists separate several with `;`. */
export function groupsOf(text: string): string[] {
  const groups = text.split(";").map((part) => part.trim().normalize("NFC")).filter((part) => part !== "");
  return [...new Set(groups)];
}

/** One spelling for each group: `Sport` and `SPORT` are one category, named as it was first. */
export class GroupNames {
  readonly #names = new Map<string, string>();

  /** The names that the library has already. */
  static async load(store: Store): Promise<GroupNames> {
    const names = new GroupNames();
    const db = await store.open();
    const after = [
      (last: string) =>
        sql<Named>`SELECT category AS name FROM playlist_items WHERE is_deleted = 0 AND category > ${last}
          ORDER BY category LIMIT 1`,
      (last: string) => sql<Named>`SELECT name FROM item_groups WHERE name > ${last} ORDER BY name LIMIT 1`,
    ];
    for (const next of after) {
      for (let last = "", count = 0; count < MAX_NAMES; count++) {
        const { rows: [row] } = await next(last).execute(db);
        if (row === undefined) break;
        names.of(last = row.name);
        if (count % LOOKED_UP_AT_ONCE === 0) await nextTurn();
      }
    }
    return names;
  }

  /** The first spelling of `group`; from now on this one, when there was none. */
  of(group: string): string {
    const name = group.trim().normalize("NFC");
    const key = name.toLowerCase();
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    if (this.#names.size < MAX_NAMES) this.#names.set(key, name);
    return name;
  }
}

interface Named {
  readonly name: string;
}
