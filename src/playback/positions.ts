/** Where the user stopped in each file, so that any device can continue there. */
import type { Store } from "../database/store.ts";
import type { Clock } from "../ports.ts";

/** Files remembered; beyond it the one that was watched longest ago is forgotten. */
export const MAX_POSITIONS = 5000;

/** A place in a file. Seconds. */
export interface Position {
  readonly positionS: number;
  readonly durationS: number;
  /** When it was stored, Unix seconds. */
  readonly updatedAt: number;
}

/** A file of a torrent. */
export interface WatchedFile {
  /** 40 hexadecimal characters. */
  readonly infohashHex: string;
  readonly fileIndex: number;
}

/** Positions in a database. Methods reject as `Store.open`. */
export class Positions {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** null when no position is stored. */
  async get({ infohashHex, fileIndex }: WatchedFile): Promise<Position | null> {
    const db = await this.#store.read();
    const row = await db.selectFrom("positions").select(["position_s", "duration_s", "updated_at"])
      .where("infohash", "=", infohashHex).where("file_index", "=", fileIndex).executeTakeFirst();
    return row === undefined
      ? null
      : { positionS: row.position_s, durationS: row.duration_s, updatedAt: row.updated_at };
  }

  /** Stores the position. `positionS` 0 forgets it. */
  async set({ infohashHex, fileIndex }: WatchedFile, positionS: number, durationS: number): Promise<void> {
    const db = await this.#store.open();
    if (positionS <= 0) {
      await db.deleteFrom("positions").where("infohash", "=", infohashHex).where("file_index", "=", fileIndex)
        .execute();
      return;
    }
    const values = {
      position_s: Math.round(positionS),
      duration_s: Math.round(durationS),
      updated_at: Math.floor(this.#clock.now() / 1000),
    };
    await db.insertInto("positions").values({ infohash: infohashHex, file_index: fileIndex, ...values })
      .onConflict((clash) => clash.columns(["infohash", "file_index"]).doUpdateSet(values)).execute();
    const firstTooMany = db.selectFrom("positions").select("updated_at").orderBy("updated_at", "desc")
      .limit(1).offset(MAX_POSITIONS);
    await db.deleteFrom("positions").where("updated_at", "<=", firstTooMany).execute();
  }
}
