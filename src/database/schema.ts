/** Tables of the database, as kysely sees them. `migrations.ts` makes them. */

/** Settings by name; values are JSON. */
export interface SettingsTable {
  key: string;
  value: string;
}

/** All tables. */
export interface Schema {
  settings: SettingsTable;
  schema_version: { version: number };
}
