import { chmod, mkdir, open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { copyLibrary, ownLibrary } from "../../platform/shared/native-library.ts";
import { temporaryDirectory } from "../support/engine.ts";

/** Runs `body` with a state directory and a library; it returns what `copyLibrary` logged. */
async function withLibrary(
  body: (path: { stateDir: string; library: string; copy: string }, make: () => Promise<string[]>) => Promise<void>,
): Promise<void> {
  const directory = await temporaryDirectory();
  const stateDir = `${directory.path}/state`, library = `${directory.path}/libsql.node`;
  try {
    await mkdir(stateDir);
    await body({ stateDir, library, copy: `${stateDir}/lib/libsql.node` }, async () => {
      const said: string[] = [];
      await copyLibrary(stateDir, { log: (_level, message) => void said.push(message) }, library);
      return said;
    });
  } finally {
    await directory.remove();
  }
}

test("copyLibrary() makes a copy that only its owner can write, and keeps it while it is the same", async () => {
  await withLibrary(async ({ stateDir, library, copy }, make) => {
    assertEquals(await make(), []);
    assertEquals(await readdir(stateDir), [], "a program without a library makes nothing");
    await writeFile(library, "a".repeat(600_000));
    assertEquals(await make(), []);
    assertEquals([await readFile(copy, "utf8"), ownLibrary()], ["a".repeat(600_000), copy]);
    const first = await stat(copy);
    assertEquals([first.mode & 0o777, (await stat(`${stateDir}/lib`)).mode & 0o777], [0o700, 0o700]);
    await make();
    assertEquals((await stat(copy)).ino, first.ino);
  });
});

test("copyLibrary() leaves the file alone that another program has loaded when it renews the copy", async () => {
  await withLibrary(async ({ stateDir, library, copy }, make) => {
    await writeFile(library, "old");
    await make();
    const loaded = await open(copy);
    try {
      await writeFile(library, "new");
      assertEquals(await make(), []);
      assertEquals([await readFile(copy, "utf8"), await loaded.readFile("utf8")], ["new", "old"]);
      assertEquals(await readdir(`${stateDir}/lib`), ["libsql.node"]);
    } finally {
      await loaded.close();
    }
  });
});

test("copyLibrary() renews a copy that others could have changed", async () => {
  await withLibrary(async ({ library, copy }, make) => {
    await writeFile(library, "good");
    await make();
    const before = await stat(copy);
    await chmod(copy, 0o777);
    assertEquals(await make(), []);
    const after = await stat(copy);
    assertEquals([after.ino === before.ino, after.mode & 0o777], [false, 0o700]);
  });
});

test("copyLibrary() says which file must stay when others can write where the copy belongs", async () => {
  await withLibrary(async ({ stateDir, library }, make) => {
    await writeFile(library, "good");
    await mkdir(`${stateDir}/lib`);
    await chmod(`${stateDir}/lib`, 0o777);
    assertEquals(await make(), [
      `do not overwrite ${library} while the engine runs: no copy of it could be made`,
    ]);
    assertEquals(await readdir(`${stateDir}/lib`), []);
  });
});
