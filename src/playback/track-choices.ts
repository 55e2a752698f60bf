/** What the user chose to hear and read: in each file, and last in any, so that any device finds it again. */
import type { Store } from "../database/store.ts";
import type { Clock } from "../ports.ts";
import type { WatchedFile } from "./positions.ts";

/** Files remembered; beyond it the one that was chosen in longest ago is forgotten. */
export const MAX_CHOICES = 5000;

/** A choice; null: none yet. */
export interface TrackChoice {
  /** Language of the sound. */
  readonly sound: string | null;
  /** Of a file: name of its subtitles; as a preference: their language. Empty: off. */
  readonly subtitles: string | null;
}

/** What was chosen last, in whatever file. */
const ANYWHERE = { infohash: "", file_index: 0 };

/** Choices in a database. Methods reject as `Store.open`. */
export class TrackChoices {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** What was chosen in a file, and what was chosen last. */
  async get(
    { infohashHex, fileIndex }: WatchedFile,
  ): Promise<{ readonly own: TrackChoice; readonly last: TrackChoice }> {
    const db = await this.#store.read();
    const rows = await db.selectFrom("track_choices").select(["infohash", "sound", "subtitles"])
      .where((is) =>
        is.or([
          is.and({ infohash: infohashHex, file_index: fileIndex }),
          is.and(ANYWHERE),
        ])
      ).execute();
    const of = (name: string): TrackChoice => {
      const { sound = null, subtitles = null } = rows.find(({ infohash }) => infohash === name) ?? {};
      return { sound, subtitles };
    };
    return { own: of(infohashHex), last: of(ANYWHERE.infohash) };
  }

  /** Stores what of `own` and `last` is not null; the rest stays. */
  async set({ infohashHex, fileIndex }: WatchedFile, own: TrackChoice, last: TrackChoice): Promise<void> {
    const db = await this.#store.open();
    // The preference is never the oldest: it changes with every choice.
    const updated_at = Math.floor(this.#clock.now() / 1000);
    for (const [key, choice] of [[{ infohash: infohashHex, file_index: fileIndex }, own], [ANYWHERE, last]] as const) {
      const values = {
        ...choice.sound === null ? {} : { sound: choice.sound },
        ...choice.subtitles === null ? {} : { subtitles: choice.subtitles },
        updated_at,
      };
      await db.insertInto("track_choices").values({ ...key, ...values })
        .onConflict((clash) => clash.columns(["infohash", "file_index"]).doUpdateSet(values)).execute();
    }
    const firstTooMany = db.selectFrom("track_choices").select("updated_at").where("infohash", "!=", ANYWHERE.infohash)
      .orderBy("updated_at", "desc").limit(1).offset(MAX_CHOICES);
    await db.deleteFrom("track_choices").where("updated_at", "<=", firstTooMany).execute();
  }
}
