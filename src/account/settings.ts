/** Settings that callers change and that survive a restart. */
import type { Store } from "../database/store.ts";

/** Names in the table, with the type of each value. */
export interface Settings {
  /** True when callers in the same subnet may call (section 5 of the HTTP API). Default true. */
  allow_intranet: boolean;
  /** True when callers from anywhere may call. Default false. */
  allow_internet: boolean;
}

/** Reads and writes settings. */
export interface SettingsStore {
  /** All settings made so far; empty, without opening the database, when there are none yet. */
  load(): Promise<Partial<Settings>>;
  /** Resolves when it is stored. */
  set<Name extends keyof Settings>(name: Name, value: Settings[Name]): Promise<void>;
}

const NAMES: readonly (keyof Settings)[] = ["allow_intranet", "allow_internet"];

/** Settings in `store`. */
export function createSettings(store: Store): SettingsStore {
  return {
    async load() {
      if (!await store.mayHoldData()) return {};
      const db = await store.open();
      const rows = await db.selectFrom("settings").select(["key", "value"]).where("key", "in", NAMES).execute();
      const settings: Record<string, unknown> = {};
      for (const { key, value } of rows) {
        if (value === "true" || value === "false") settings[key] = value === "true";
      }
      return settings;
    },
    async set(name, value) {
      const db = await store.open();
      const text = JSON.stringify(value);
      await db.insertInto("settings").values({ key: name, value: text })
        .onConflict((clash) => clash.column("key").doUpdateSet({ value: text })).execute();
    },
  };
}
