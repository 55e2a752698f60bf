/** Whether the built file does its job where nothing lies beside it, or says what is missing. */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { run, start } from "../../test/support/process.ts";
import { ALONE, type Form, serves } from "./smoke.ts";

/** What doctor and the log say where there is no SQLite. */
const MISSING = /there is no SQLite for the library, settings and accounts/;
/** Node has one of its own from here on. */
const NODE_WITH_SQLITE = 22;
const DOCTOR_MS = 60_000;

/** Runs a copy of `bundle` by `command` in an empty folder. Throws unless it keeps what it is told, or says why it cannot. */
export async function checkAlone(command: string, bundle: string): Promise<void> {
  const cwd = mkdtempSync(path.join(os.tmpdir(), "millrace-alone-"));
  const file = path.join(cwd, path.basename(bundle));
  copyFileSync(bundle, file);
  const [name, ...before] = command.split(" ");
  const form: Form = { command: [name!, ...before, file], cwd };
  try {
    if (hasSqlite(name!)) await serves(form);
    else await saysSo(form);
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

function hasSqlite(command: string): boolean {
  const { stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  const node = /^v(\d+)\./.exec(stdout);
  return node === null || Number(node[1]) >= NODE_WITH_SQLITE;
}

async function saysSo({ command: [name, ...before], cwd }: Form): Promise<void> {
  const options = [...ALONE, "--state-dir", path.join(cwd, "state"), "--cache-dir", path.join(cwd, "cache")];
  const { code, text } = await run(name, [...before, "doctor", ...options], { cwd, timeoutMs: DOCTOR_MS });
  if (code !== 3 || !MISSING.test(text)) throw new Error(`doctor ended with ${code}\n${text}`);
  const program = start(name, [...before, ...options], { cwd });
  try {
    await program.line(/^ready /);
    if (!MISSING.test(program.output())) throw new Error(`the log does not say it: ${program.output()}`);
  } finally {
    await program.stop();
  }
}
