import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { spawn } from "node:child_process";
import { mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runtimeName } from "../../platform/detect.ts";
import { lockDirectory } from "../../platform/directory-lock.ts";
import { MillraceError } from "../../src/errors.ts";
import { withDirectory } from "./support.ts";

const TAKEN = "somebody else is here";

test("lockDirectory() lets one have a directory at a time", () =>
  withDirectory(async (directory) => {
    const release = await lockDirectory(directory, TAKEN);
    const error = await assertRejects(() => lockDirectory(directory, TAKEN), MillraceError);
    assertEquals(error.code, "config");
    assertEquals(error.message, TAKEN);
    await mkdir(path.join(directory, "other"));
    const other = await lockDirectory(path.join(directory, "other"), TAKEN);
    other();
    release();
    (await lockDirectory(directory, TAKEN))();
  }));

test("lockDirectory() keeps its socket in the directory, and leaves nothing there when it is released", () =>
  withDirectory(async (directory) => {
    const release = await lockDirectory(directory, TAKEN);
    assertEquals(await readdir(directory), ["lock"]);
    release();
    assertEquals(await readdir(directory), []);
  }));

test("lockDirectory() locks a directory whose path is too long for a socket", () =>
  withDirectory(async (parent) => {
    const directory = path.join(parent, "long".repeat(30));
    await mkdir(directory);
    const release = await lockDirectory(directory, TAKEN);
    await assertRejects(() => lockDirectory(directory, TAKEN), MillraceError, TAKEN);
    release();
    assertEquals(await readdir(directory), []);
  }));

test("lockDirectory() rejects while another process holds the lock, and works once that was killed", () =>
  withDirectory(async (directory) => {
    const module = fileURLToPath(new URL("../../platform/directory-lock.ts", import.meta.url));
    const script = `import(${JSON.stringify(module)}).then((m) => m.lockDirectory(${JSON.stringify(directory)}, ""))` +
      `.then(() => { console.log("held"); setInterval(() => {}, 1000); })`;
    const args = runtimeName() === "deno" ? ["eval", "--no-check", script] : ["-e", script];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise<void>((resolve, reject) => {
      child.stdout.once("data", () => resolve());
      child.once("exit", (code) => reject(new Error(`it ended with ${code}`)));
    });
    const ended = new Promise((resolve) => child.once("close", resolve));
    try {
      // Its answer and its hang-up arrive in an order that differs from time to time.
      for (let times = 0; times < 1000; times++) {
        const error = await assertRejects(() => lockDirectory(directory, TAKEN), MillraceError);
        assertEquals(error.message, TAKEN);
      }
    } finally {
      process.kill(child.pid!, "SIGKILL");
    }
    await ended;
    (await lockDirectory(directory, TAKEN))();
  }));
