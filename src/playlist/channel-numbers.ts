/** Numbers of channels, for players and television software that sort and remember channels by number. */
import { type Kysely, sql } from "kysely";
import type { Schema } from "../database/schema.ts";

/** Matches channel numbers: `5`, and `5.1` as in digital television. Clients that expect a number would stumble over `HD 5`. */
const NUMBER = /^\d{1,9}(?:\.\d{1,4})?$/;

/**
 * Every enabled item has its own lasting number: the `tvg-chno` of the list it came from unless an older item has it, else the
 * item's id, followed by `.1` (`.2`, …) when a list gave that number to another item.
 */
export class ChannelNumbers {
  /** Item by number, for the numbers that lists gave. */
  readonly #holders: ReadonlyMap<string, number>;
  /** Number by item, for the same numbers. */
  readonly #numbers: ReadonlyMap<number, string>;

  private constructor(holders: ReadonlyMap<string, number>) {
    this.#holders = holders;
    this.#numbers = new Map([...holders].map(([number, id]) => [id, number]));
  }

  /** The numbers as they are now. */
  static async load(db: Kysely<Schema>): Promise<ChannelNumbers> {
    const given = sql<string | null>`imported ->> '$.attributes."tvg-chno"'`;
    const rows = await db.selectFrom("playlist_items").select(["id", given.as("number")])
      .where("is_deleted", "=", 0).where("enabled", "=", 1).where(given, "is not", null).orderBy("id").execute();
    const holders = new Map<string, number>();
    for (const { id, number } of rows) {
      if (number !== null && NUMBER.test(number) && !holders.has(number)) holders.set(number, id);
    }
    return new ChannelNumbers(holders);
  }

  /** The number of an item. */
  of(id: number): string {
    const given = this.#numbers.get(id);
    if (given !== undefined) return given;
    let number = String(id);
    for (let n = 1; this.#holders.has(number); n++) number = `${id}.${n}`;
    return number;
  }

  /** Inverse of `of`: the id whose number this is, even if there is no such item; null when no id has this number. */
  itemOf(number: string): number | null {
    if (!NUMBER.test(number)) return null;
    const holder = this.#holders.get(number);
    if (holder !== undefined) return holder;
    const id = Number(number.split(".")[0]);
    return this.of(id) === number ? id : null;
  }
}
