import { chmod, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { removeLeftovers, requirePrivate } from "../../platform/directories.ts";
import { temporaryDirectory } from "../support/engine.ts";

const modeOf = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);

/** Runs `body` with a directory, and a check that answers the warnings. */
async function within(body: (path: string, check: (directory: string) => Promise<string[]>) => Promise<void>) {
  const { files } = await loadPorts({ log: { level: "error" } });
  const { path, remove } = await temporaryDirectory();
  try {
    await body(path, async (directory) => {
      const warnings: string[] = [];
      const log = { log: (_level: string, message: string) => void warnings.push(message), child: () => log };
      await requirePrivate({ files, log }, directory, "state-dir");
      return warnings;
    });
  } finally {
    await remove();
  }
}

test("requirePrivate() makes directories that no other user can read, whatever the umask", async () => {
  await within(async (path, check) => {
    assertEquals(await check(`${path}/a/b`), []);
    assertEquals([await modeOf(`${path}/a`), await modeOf(`${path}/a/b`)], ["700", "700"]);
  });
});

test("requirePrivate() closes a directory of the engine's own, and the secrets in it", async () => {
  await within(async (path, check) => {
    for (const name of ["empty", "used"]) {
      await mkdir(`${path}/${name}`);
      await chmod(`${path}/${name}`, 0o755);
    }
    const secrets = ["access-token", "secret-key", "sign-in-key.json", "millrace.db", "millrace.db-wal"];
    for (const name of [...secrets, "notes"]) {
      await writeFile(`${path}/used/${name}`, "x");
      await chmod(`${path}/used/${name}`, 0o644);
    }
    for (const name of ["empty", "used"]) {
      assertEquals(await check(`${path}/${name}`), []);
      assertEquals(await modeOf(`${path}/${name}`), "700");
    }
    for (const name of secrets) assertEquals(await modeOf(`${path}/used/${name}`), "600", name);
    assertEquals(await modeOf(`${path}/used/notes`), "644");
  });
});

test("requirePrivate() closes a cache directory and the torrents in it, its own or shared", async () => {
  const torrents = ["a".repeat(40), `${"b".repeat(40)}.resume`];
  await within(async (path, check) => {
    for (const [name, other] of [["own", "lock"], ["shared", "somebody's"]] as const) {
      await mkdir(`${path}/${name}/${torrents[0]}`, { recursive: true });
      await writeFile(`${path}/${name}/${torrents[1]}`, "x");
      await writeFile(`${path}/${name}/${other}`, "x");
      for (const file of ["", ...torrents]) await chmod(`${path}/${name}/${file}`, 0o755);
    }
    await chmod(`${path}/shared`, 0o1777);
    assertEquals([await check(`${path}/own`), (await check(`${path}/shared`)).length], [[], 1]);
    assertEquals([await modeOf(`${path}/own`), await modeOf(`${path}/shared`)], ["700", "1777"]);
    for (const name of ["own", "shared"]) {
      for (const file of torrents) assertEquals(await modeOf(`${path}/${name}/${file}`), "700");
    }
  });
});

test("requirePrivate() does not change a directory that others use too, and warns", async () => {
  await within(async (path, check) => {
    await mkdir(`${path}/shared`);
    await writeFile(`${path}/shared/somebody's`, "x");
    await mkdir(`${path}/sticky`);
    await writeFile(`${path}/shared/access-token.backup`, "x");
    for (const [name, mode] of [["shared", 0o755], ["sticky", 0o1777]] as const) {
      await chmod(`${path}/${name}`, mode);
      const [warning] = await check(`${path}/${name}`);
      assertEquals(warning?.startsWith("other users can look into --state-dir"), true, name);
      assertEquals(await modeOf(`${path}/${name}`), mode.toString(8));
    }
  });
});

test("removeLeftovers() removes only files that a killed engine was writing", async () => {
  const { files } = await loadPorts({ log: { level: "error" } });
  const { path, remove } = await temporaryDirectory();
  try {
    await mkdir(`${path}/transport`);
    const left = [`sessions.json.${crypto.randomUUID()}.tmp`, `transport/aa.torrent.${crypto.randomUUID()}.tmp`];
    const kept = ["sessions.json", "film.tmp", "transport/aa.torrent"];
    for (const name of [...left, ...kept, ".write-test-17"]) await writeFile(`${path}/${name}`, "x");
    await removeLeftovers(files, path);
    assertEquals((await readdir(path)).sort(), ["film.tmp", "sessions.json", "transport"]);
    assertEquals(await readdir(`${path}/transport`), ["aa.torrent"]);
    await removeLeftovers(files, `${path}/missing`);
  } finally {
    await remove();
  }
});
