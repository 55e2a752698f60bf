import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { MillraceError } from "../../src/errors.ts";
import { ports, withDirectory } from "./support.ts";
import { noise } from "../support/random.ts";

const { files } = ports;

async function rejectsWith(code: MillraceError["code"], run: () => Promise<unknown>): Promise<void> {
  const error = await assertRejects(run, MillraceError);
  assertEquals(error.code, code, error.message);
  // Clients on other machines read messages; the path is for the log.
  assert(!error.message.includes(tmpdir()) && error.detail?.["path"] !== undefined, error.message);
}

test("FileHandle.read() and write() work at any offset, many at once", () =>
  withDirectory(async (directory) => {
    const file = await files.open(`${directory}/a`, "write");
    const blocks = Array.from({ length: 32 }, (_, i) => noise(50_000, i + 1));
    const order = blocks.map((_, i) => (i * 13) % 32);
    await Promise.all(order.map((i) => file.write(blocks[i]!, i * 50_000)));
    assertEquals((await file.info()).sizeBytes, 32 * 50_000);
    await Promise.all(order.map(async (i) => {
      const got = new Uint8Array(50_000);
      assertEquals(await file.read(got, i * 50_000), 50_000);
      assertEquals(Buffer.compare(got, blocks[i]!), 0, `block ${i}`);
    }));
    await file.sync();
    await file.close();
    await file.close();
    await rejectsWith("closed", () => file.read(new Uint8Array(1), 0));
  }));

test("FileHandle.read() answers what there is up to the end and 0 beyond it", () =>
  withDirectory(async (directory) => {
    const file = await files.open(`${directory}/a`, "write");
    await file.write(new Uint8Array([1, 2, 3]), 0);
    const into = new Uint8Array(10);
    assertEquals(await file.read(into, 1), 2);
    assertEquals([...into.subarray(0, 2)], [2, 3]);
    assertEquals(await file.read(into, 3), 0);
    assertEquals(await file.read(into, 1000), 0);
    await file.close();
  }));

test("FileHandle.write() far beyond the end leaves a hole that takes no room", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/sparse`;
    const file = await files.open(path, "write");
    const far = 5 * 2 ** 30;
    await file.write(new Uint8Array([9]), far);
    assertEquals((await file.info()).sizeBytes, far + 1);
    const into = new Uint8Array(4);
    assertEquals(await file.read(into, 1_000_000), 4);
    assertEquals([...into], [0, 0, 0, 0]);
    assertEquals([await file.read(into, far), into[0]], [1, 9]);
    await file.truncate(2 ** 30);
    assertEquals((await file.info()).sizeBytes, 2 ** 30);
    await file.truncate(2 ** 33);
    assertEquals((await file.info()).sizeBytes, 2 ** 33);
    await file.close();
    assert(fs.statSync(path).blocks * 512 < 2 ** 20, "the file is not sparse");
  }));

test("FilePort.open() in write mode keeps the file's content; in read mode nothing can be written", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/a`;
    await files.writeFile(path, new Uint8Array([1, 2, 3]));
    const writer = await files.open(path, "write");
    await writer.write(new Uint8Array([8]), 1);
    await writer.close();
    assertEquals([...await files.readFile(path)], [1, 8, 3]);
    const reader = await files.open(path, "read");
    await assertRejects(() => reader.write(new Uint8Array(1), 0), MillraceError);
    await reader.close();
  }));

test("FilePort rejects with not_found for missing files", () =>
  withDirectory(async (directory) => {
    const missing = `${directory}/missing`;
    await rejectsWith("not_found", () => files.open(missing, "read"));
    await rejectsWith("not_found", () => files.open(`${missing}/x`, "write"));
    await rejectsWith("not_found", () => files.readFile(missing));
    await rejectsWith("not_found", () => files.info(missing));
    await rejectsWith("not_found", () => files.list(missing));
    await rejectsWith("not_found", () => files.rename(missing, `${directory}/b`));
    await rejectsWith("not_found", () => files.writeFile(`${missing}/x`, new Uint8Array(1)));
    await files.remove(missing);
  }));

test("FilePort.readFile() keeps to its limit", () =>
  withDirectory(async (directory) => {
    await files.writeFile(`${directory}/a`, new Uint8Array(100));
    assertEquals((await files.readFile(`${directory}/a`, { maxBytes: 100 })).length, 100);
    await rejectsWith("too_large", () => files.readFile(`${directory}/a`, { maxBytes: 99 }));
    await rejectsWith("io", () => files.readFile(directory));
  }));

test("FilePort.writeFile() replaces in one step, sets the mode and leaves no other file", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/secret`;
    await files.writeFile(path, new Uint8Array(10));
    const writers = Array.from(
      { length: 8 },
      (_, i) => files.writeFile(path, new Uint8Array(50_000).fill(i + 1), { mode: 0o600 }),
    );
    const reader = await files.open(path, "read");
    await Promise.all(writers);
    // The handle still sees the file it opened: replaced, never overwritten.
    const old = new Uint8Array(20);
    assert([10, 20].includes(await reader.read(old, 0)));
    await reader.close();
    const bytes = await files.readFile(path);
    assertEquals(bytes.length, 50_000);
    assert(bytes.every((byte) => byte === bytes[0]), "a mixture of writers");
    assertEquals(await files.list(directory), ["secret"]);
    assertEquals(fs.statSync(path).mode & 0o777, 0o600);
    await files.writeFile(path, new Uint8Array(1), { mode: 0o644 });
    assertEquals(fs.statSync(path).mode & 0o777, 0o644);
  }));

test("FilePort makes files and directories that no other user can read, unless told otherwise", () =>
  withDirectory(async (directory) => {
    await files.makeDirectory(`${directory}/a/b`);
    await files.writeFile(`${directory}/a/written`, new Uint8Array(1));
    await (await files.open(`${directory}/a/opened`, "write")).close();
    const modeOf = (name: string) => (fs.statSync(`${directory}/${name}`).mode & 0o777).toString(8);
    assertEquals(["a", "a/b", "a/written", "a/opened"].map(modeOf), ["700", "700", "600", "600"]);
  }));

test("FilePort.writeFile() leaves nothing behind when it fails", () =>
  withDirectory(async (directory) => {
    await files.makeDirectory(`${directory}/taken/inside`);
    await assertRejects(() => files.writeFile(`${directory}/taken`, new Uint8Array(5)), MillraceError);
    assertEquals(await files.list(directory), ["taken"]);
  }));

test("FilePort lists, describes, renames and removes", () =>
  withDirectory(async (directory) => {
    await files.makeDirectory(`${directory}/x/y/z`);
    await files.makeDirectory(`${directory}/x/y/z`);
    const before = Date.now();
    await files.writeFile(`${directory}/x/f`, new Uint8Array(12));
    assertEquals((await files.list(`${directory}/x`)).sort(), ["f", "y"]);
    const info = await files.info(`${directory}/x/f`);
    assertEquals([info.sizeBytes, info.isDirectory], [12, false]);
    assert(Math.abs(info.modifiedMs - before) < 60_000);
    assertEquals((await files.info(`${directory}/x`)).isDirectory, true);
    await files.rename(`${directory}/x/f`, `${directory}/x/y/g`);
    assertEquals((await files.list(`${directory}/x/y`)).sort(), ["g", "z"]);
    await files.remove(`${directory}/x`);
    assertEquals(await files.list(directory), []);
  }));
