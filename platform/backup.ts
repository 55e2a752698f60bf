/** `backup` and `restore`: the state of an engine in one file, also while the engine runs. */
import type { Config } from "../src/config.ts";
import { Backup, type KeptFile, writeBackup } from "../src/database/backup.ts";
import { type StoreLocation, storeLocation } from "../src/database/store.ts";
import { hasCode, MillraceError } from "../src/errors.ts";
import type { FilePort, Ports } from "../src/ports.ts";
import { VERSION } from "../src/version.ts";
import { chooseDirectories, requirePrivate } from "./directories.ts";
import { lockDirectory } from "./directory-lock.ts";
import { print } from "./host.ts";
import { absolute } from "./peers-only.ts";
import { STATE_LAYOUT } from "./state-layout.ts";

/** Largest file that a backup takes, bytes: the largest that the engine writes, a front's memory, is half of it. */
const MAX_FILE_BYTES = 64 * 2 ** 20;
/** Levels of folders: `own-broadcasts/NAME/state` has the most. */
const MAX_DEPTH = 4;
/** A broadcast that lacks this file begins a new epoch: what was sent after the backup is never signed twice. */
const UP_TO_DATE = "saved";
/** Where files of a backup wait until all of them are written. */
const UNPACKED = ".restoring";

const DATABASE = "millrace.db";
const KEPT = STATE_LAYOUT.filter(({ name, isBackedUp }) => isBackedUp && name !== DATABASE)
  .map(({ name }) => name.replace(/\/$/, ""));

/** Runs `backup FILE` and returns the exit code. */
export async function runBackup(config: Config, ports: Ports): Promise<number> {
  const path = fileOf(config, "backup");
  const { stateDir, location } = placesOf(config);
  const hasDatabase = location.kind === "server" || await isThere(ports.files, `${stateDir}/${DATABASE}`);
  if (!hasDatabase && (await namesIn(ports.files, stateDir, KEPT)).length === 0) {
    throw new MillraceError("config", `${stateDir} holds nothing of an engine: name its --state-dir`);
  }
  const facts = await writeBackup(
    ports,
    hasDatabase ? location : null,
    path,
    VERSION,
    filesBelow(ports.files, stateDir),
  );
  const { version, files } = facts;
  print(config.json ? JSON.stringify({ path, ...facts }) : `${path}: database version ${version}, ${files} files`);
  return 0;
}

/** Runs `restore FILE` and returns the exit code. */
export async function runRestore(config: Config, ports: Ports): Promise<number> {
  const path = fileOf(config, "restore");
  const { stateDir, location } = placesOf(config);
  const backup = await Backup.open(ports, path);
  try {
    await requirePrivate(ports, stateDir, "state-dir");
    const release = await lockDirectory(
      stateDir,
      `an engine uses ${stateDir}: end it first, or name another --state-dir`,
    );
    try {
      await restore(ports.files, backup, stateDir, location);
    } finally {
      release();
    }
    const { facts } = backup;
    const made = new Date(facts.createdMs).toISOString();
    print(
      config.json
        ? JSON.stringify({ path, ...facts })
        : `restored what millrace ${facts.release} saved at ${made}: database version ${facts.version}, ${facts.files} files`,
    );
    return 0;
  } finally {
    await backup.close();
  }
}

async function restore(files: FilePort, backup: Backup, stateDir: string, location: StoreLocation): Promise<void> {
  const there = await namesIn(files, stateDir, [DATABASE, ...KEPT]);
  if (there.length > 0) {
    throw new MillraceError(
      "conflict",
      `${stateDir} holds ${there.slice(0, 3).join(", ")} already, which would be overwritten: move it away, or name ` +
        "an empty --state-dir",
    );
  }
  const unpacked = `${stateDir}/${UNPACKED}`;
  await files.remove(unpacked);
  const moved: string[] = [];
  try {
    await files.makeDirectory(unpacked);
    for await (const { path, bytes } of backup.files()) {
      if (!isKept(path)) throw new MillraceError("corrupt", "the backup names a file that no backup holds");
      await files.makeDirectory(`${unpacked}/${path}`.replace(/\/[^/]*$/, ""));
      await files.writeFile(`${unpacked}/${path}`, bytes);
    }
    if (backup.facts.version > 0) {
      if (location.kind === "server") await backup.databaseToServer(location, `${unpacked}/scratch.db`);
      else await backup.databaseTo(`${unpacked}/${DATABASE}`);
    }
    // The database comes last: with it the directory is whole.
    const names = await files.list(unpacked);
    for (const name of names.sort((a, b) => Number(a === DATABASE) - Number(b === DATABASE))) {
      await files.rename(`${unpacked}/${name}`, `${stateDir}/${name}`);
      moved.push(name);
    }
  } catch (error) {
    for (const name of moved) await files.remove(`${stateDir}/${name}`);
    throw error;
  } finally {
    await files.remove(unpacked);
  }
}

function isKept(path: string): boolean {
  const parts = path.split("/");
  return KEPT.includes(parts[0]!) && parts.every((part) => part !== "" && part !== "." && part !== "..") &&
    !/[\\:\0]/.test(path);
}

function fileOf({ words }: Config, command: string): string {
  const [file] = words;
  if (file === undefined) throw new MillraceError("config", `${command} needs a file; see --help`);
  return absolute(file);
}

function placesOf(config: Config): { stateDir: string; location: StoreLocation } {
  const { stateDir } = chooseDirectories(config);
  return { stateDir, location: storeLocation({ ...config, stateDir }) };
}

async function isThere(files: FilePort, path: string): Promise<boolean> {
  try {
    await files.info(path);
    return true;
  } catch (error) {
    if (hasCode(error, "not_found")) return false;
    throw error;
  }
}

async function namesIn(files: FilePort, directory: string, names: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const name of names) if (await isThere(files, `${directory}/${name}`)) found.push(name);
  return found;
}

async function* filesBelow(files: FilePort, stateDir: string): AsyncGenerator<KeptFile> {
  for (const name of await namesIn(files, stateDir, KEPT)) yield* filesAt(files, stateDir, name, MAX_DEPTH);
}

/** A file that goes while the backup runs, as an evicted transport file does, is left out. */
async function* filesAt(files: FilePort, stateDir: string, path: string, depth: number): AsyncGenerator<KeptFile> {
  const whole = `${stateDir}/${path}`;
  try {
    if ((await files.info(whole)).isDirectory) {
      if (depth === 0) return;
      for (const name of (await files.list(whole)).sort()) {
        if (name !== UP_TO_DATE && !name.endsWith(".tmp")) {
          yield* filesAt(files, stateDir, `${path}/${name}`, depth - 1);
        }
      }
      return;
    }
    yield { path, bytes: await files.readFile(whole, { maxBytes: MAX_FILE_BYTES }) };
  } catch (error) {
    if (!hasCode(error, "not_found")) throw error;
  }
}
