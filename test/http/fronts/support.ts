/** An engine in memory with fronts, and a torrent that somebody seeds. */
import { after, before } from "node:test";
import { clip } from "../../support/fixtures.ts";
import { loadPorts } from "../../../platform/detect.ts";
import { Accounts } from "../../../src/account/accounts.ts";
import { createStore, storeLocation } from "../../../src/database/store.ts";
import { type SeededFiles, seedFiles, temporaryDirectory } from "../../support/engine.ts";
import { ADDRESSES, withEngine } from "../../api/support.ts";
import type { EngineOptions } from "../../../src/engine.ts";
import type { FrontName } from "../../../src/http/context.ts";

/** A request to a front at a listener of its own; `from` is the caller's class. */
export type Ask = (
  path: string,
  init?: RequestInit & { readonly from?: keyof typeof ADDRESSES; readonly port?: "engine" },
) => Promise<Response>;

/** Host and port by which tests call a front's listener. */
export const AT = "192.168.7.5:8090";

/** Runs `body` with the front `name` of an engine. */
export async function withFront(
  name: FrontName,
  body: (ask: Ask, call: Parameters<Parameters<typeof withEngine>[0]>[0]["call"]) => Promise<void>,
  options: EngineOptions = {},
): Promise<void> {
  await withEngine(async ({ engine, call }) => {
    const ask: Ask = (path, { from = "loopback", port, ...init } = {}) =>
      engine.fetch(new Request(new URL(path, `http://${port === "engine" ? "192.168.7.5:6878" : AT}`), init), {
        remote: { host: ADDRESSES[from], port: 1 },
        ...(port === "engine" ? {} : { front: name }),
      });
    await body(ask, call);
  }, { fronts: [name], ...options });
}

/** The account of `withAccount`. */
export const ACCOUNT = { user: "viewer@example.org", password: "a+b/c d?ä" };

/** The same with an account, and a directory for what the engine keeps. */
export async function withAccount(
  name: FrontName,
  body: Parameters<typeof withFront>[1],
  options: (directory: string) => EngineOptions = () => ({}),
): Promise<void> {
  const { path: stateDir, remove } = await temporaryDirectory();
  try {
    const ports = await loadPorts({ log: { level: "error" } });
    const store = createStore(ports, storeLocation({ databaseUrl: null, databaseToken: null, stateDir }), {});
    await new Accounts(store, ports.clock).add(ACCOUNT.user, ACCOUNT.password);
    await store.close();
    await withFront(name, body, { stateDir, ...options(stateDir) });
  } finally {
    await remove();
  }
}

/** A season of two episodes, with a text beside the first; in the torrent the second comes first. */
export const SEASON = [
  { path: "S01E02.ts", bytes: clip("ts-188.ts") },
  { path: "S01E01.ts", bytes: clip("ts-188.ts") },
  { path: "S01E01.srt", bytes: new TextEncoder().encode("1\n00:00:01,000 --> 00:00:02,000\nHello\n") },
];

/** The season, seeded while the tests of a file run. */
export function seededSeason(): () => SeededFiles {
  let seeder: SeededFiles | undefined;
  before(async () => {
    seeder = await seedFiles(SEASON, { name: "Season" });
  });
  after(() => seeder?.close());
  return () => seeder!;
}
