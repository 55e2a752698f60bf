/** Another connection to a database file, by the library that the engine uses: two in one process drop each other's locks. */
import { loadPorts } from "../../platform/detect.ts";
import { openClient } from "../../src/database/open-client.ts";

/** The connection. */
export interface OtherConnection {
  /** Runs a statement and returns its rows. */
  execute(sql: string): Promise<Record<string, unknown>[]>;
  close(): void;
}

/** Opens the file at `path` once more. */
export async function openDatabase(path: string): Promise<OtherConnection> {
  const client = await openClient((await loadPorts()).sqlite ?? null, { kind: "file", path });
  return {
    execute: async (sql) => (await client.execute({ sql, args: [] })).rows,
    close: () => client.close(),
  };
}
