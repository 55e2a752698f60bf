/** An engine whose own files are damaged: playback works, the damaged files are kept, and the user is told. */
import { mkdir, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import type { Logger } from "../../src/ports.ts";
import { serveOn, temporaryDirectory } from "../support/engine.ts";

interface Answer {
  readonly result: Record<string, unknown> | null;
  readonly error: unknown;
}

/** Runs `body` against an engine on `stateDir`; `log` has its errors. */
async function onState(
  stateDir: string,
  body: (call: (method: string, params?: Record<string, string>) => Promise<Answer>, log: string[]) => Promise<void>,
): Promise<void> {
  const lines: string[] = [];
  const log: Logger = {
    log: (level, message) => level === "error" ? void lines.push(message) : undefined,
    child: () => log,
  };
  const served = await serveOn({ ...await loadPorts(), log }, { stateDir });
  try {
    await body(async (method, params = {}) => {
      const query = new URLSearchParams({ method, ...params });
      return await (await fetch(`${served.url}/server/api?${query}`)).json();
    }, lines);
  } finally {
    await served.close();
  }
}

async function tokenOf(call: (method: string) => Promise<Answer>): Promise<string> {
  const { token } = (await call("get_api_access_token")).result as { token: string };
  return token;
}

test("createEngine() starts with new files when the database and the token are damaged", async () => {
  const damages: [string, (path: string) => Promise<unknown>][] = [
    ["no database", (path) => writeFile(path, "This is a letter to my landlord.\n".repeat(300))],
    ["torn", (path) => truncate(path, 4096 * 5)],
    ["a directory", (path) => rm(path).then(() => mkdir(path))],
  ];
  for (const [name, damage] of damages) {
    const { path: stateDir, remove } = await temporaryDirectory();
    try {
      let first = "";
      await onState(stateDir, async (call, log) => {
        first = await tokenOf(call);
        const item = { title: "One", infohash: "a".repeat(40), token: first };
        assertEquals((await call("playlist_add_item", item)).error, null, name);
        assertEquals([(await call("get_status")).result?.notice, log], [undefined, []], name);
      });
      await damage(join(stateDir, "millrace.db"));
      await writeFile(join(stateDir, "access-token"), "half a tok");
      await onState(stateDir, async (call, log) => {
        const token = await tokenOf(call);
        assertNotEquals(token, first, name);
        const status = (await call("get_status")).result!;
        assertEquals(status.playlist_loaded, true, name);
        assertMatch(String(status.notice), /damaged.*set aside/, name);
        assertEquals(log.length, 2, `${name}: ${log}`);
        assertEquals((await call("playlist_get", { token })).result?.total_items, 0, name);
        assertEquals((await call("playlist_add_item", { title: "Two", infohash: "b".repeat(40), token })).error, null);
        const kept = await readdir(stateDir);
        assert(kept.some((file) => file.startsWith("millrace.db.damaged-")), `${name}: ${kept}`);
        assert(kept.some((file) => file.startsWith("access-token.damaged-")), `${name}: ${kept}`);
      });
      await onState(stateDir, async (call, log) => {
        const token = await tokenOf(call);
        assertEquals((await call("playlist_get", { token })).result?.total_items, 1, name);
        assertEquals([(await call("get_status")).result?.notice, log], [undefined, []], name);
      });
    } finally {
      await remove();
    }
  }
});

test("createEngine() removes the lists that a killed run left, and nothing else", async () => {
  const { path: stateDir, remove } = await temporaryDirectory();
  try {
    const imports = join(stateDir, "imports");
    await mkdir(imports);
    await writeFile(join(imports, `${"0".repeat(32)}.list`), "#EXTM3U\n");
    await writeFile(join(imports, "notes.txt"), "mine");
    await onState(stateDir, async (_call, log) => {
      assertEquals([await readdir(imports), log], [["notes.txt"], []]);
    });
  } finally {
    await remove();
  }
});
