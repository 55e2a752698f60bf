import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createSecretBox, loadSecretBox } from "../../src/account/secret-box.ts";
import { MillraceError } from "../../src/errors.ts";
import { temporaryDirectory } from "../support/engine.ts";

const corrupt = async (action: () => Promise<unknown>) =>
  assertEquals((await assertRejects(action, MillraceError) as MillraceError).code, "corrupt");

test("a SecretBox opens what it sealed only with the same key and context", async () => {
  const box = createSecretBox(new Uint8Array(32).fill(1));
  for (const text of ["", "hunter2", "pässwörd 日本", "x".repeat(1000)]) {
    const sealed = await box.seal(text, "http://h/");
    assertEquals(await box.open(sealed, "http://h/"), text);
    assertNotEquals(await box.seal(text, "http://h/"), sealed, "two seals of one text are equal");
    await corrupt(() => box.open(sealed, "http://other/"));
    await corrupt(() => createSecretBox(new Uint8Array(32).fill(2)).open(sealed, "http://h/"));
    await corrupt(() => box.open(sealed.replace(/.$/, (c) => c === "0" ? "1" : "0"), "http://h/"));
  }
  for (const sealed of ["", "v1:", "v1:zz", "v2:00", "hunter2"]) await corrupt(() => box.open(sealed, ""));
});

test("loadSecretBox() creates its key at the first use, for the owner only, and never replaces a damaged one", async () => {
  const directory = await temporaryDirectory();
  try {
    const { files } = await loadPorts();
    const stateDir = join(directory.path, "state");
    const path = join(stateDir, "secret-key");
    const box = loadSecretBox(files, stateDir);
    await assertRejects(() => stat(path));
    const sealed = await Promise.all(["a", "b"].map((text) => box.seal(text, "c")));
    assertEquals((await stat(path)).mode & 0o777, 0o600);
    const again = loadSecretBox(files, stateDir);
    assertEquals(await Promise.all(sealed.map((text) => again.open(text, "c"))), ["a", "b"]);
    await writeFile(path, "damaged");
    await corrupt(() => loadSecretBox(files, stateDir).seal("a", "c"));
    assertEquals(await readFile(path, "utf8"), "damaged");
  } finally {
    await directory.remove();
  }
});
