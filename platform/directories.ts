/** Where the engine keeps its files when the user does not say. */
import { chmod, mkdir, readdir, stat } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { MillraceError } from "../src/errors.ts";
import type { FilePort, Ports } from "../src/ports.ts";

/** Absolute directories with `/` between their parts. */
export interface Directories {
  readonly stateDir: string;
  readonly cacheDir: string;
}

/** The directories of the configuration, or else the platform's usual ones. */
export function chooseDirectories(given: { stateDir: string | null; cacheDir: string | null }): Directories {
  const usual = usualDirectories();
  return {
    stateDir: absolute(given.stateDir ?? usual.stateDir),
    cacheDir: absolute(given.cacheDir ?? usual.cacheDir),
  };
}

function usualDirectories(): Directories {
  const home = os.homedir();
  if (process.platform === "win32") {
    const base = path.join(process.env["LOCALAPPDATA"] ?? path.join(home, "AppData", "Local"), "millrace");
    return { stateDir: path.join(base, "state"), cacheDir: path.join(base, "cache") };
  }
  if (process.platform === "darwin") {
    const library = path.join(home, "Library");
    return {
      stateDir: path.join(library, "Application Support", "millrace"),
      cacheDir: path.join(library, "Caches", "millrace"),
    };
  }
  // XDG Base Directory Specification 0.8: relative paths in the variables are to be ignored.
  const xdg = (variable: string, fallback: string) => {
    const value = process.env[variable];
    return path.join(value !== undefined && path.isAbsolute(value) ? value : path.join(home, fallback), "millrace");
  };
  return { stateDir: xdg("XDG_DATA_HOME", ".local/share"), cacheDir: xdg("XDG_CACHE_HOME", ".cache") };
}

function absolute(directory: string): string {
  return path.resolve(directory).replaceAll("\\", "/");
}

/** Permissions of directories with secrets: their owner alone. */
const OWNER_ONLY = 0o700;
/** Those of others, and the bit of directories that everybody shares (`/tmp`). */
const OTHERS = 0o077;
const STICKY = 0o1000;

/** Files and directories that the engine makes where it keeps its state, but those for the time of a run. */
const OWN_NAMES: ReadonlySet<string> = new Set([
  ...["access-token", "secret-key", "sign-in-key.json", "sessions.json", "dht.json", "millrace.db", "lock"],
  ...["transport", "wrappers", "broadcasts", "relay", "node", "state", "broadcast.torrent", "viewers"],
]);

/** Those that hold secrets. Ours are made with mode 600; a copy from elsewhere may have another one. */
const SECRETS = ["access-token", "secret-key", "sign-in-key.json", "sessions.json", "state"]
  .concat(["", "-wal", "-shm"].map((end) => `millrace.db${end}`));

/**
 * As `requireWritable`, for a directory that holds secrets: none but its owner may look into it (mode 700) and into those.
 * That is put right in one that exists, if nothing says that it is somebody else's, too; else a warning tells the user.
 */
export async function requirePrivate(
  { files, log }: Pick<Ports, "files" | "log">,
  directory: string,
  flag: string,
): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: OWNER_ONLY });
  } catch {
    // What follows fails as well, and says why.
  }
  await requireWritable(files, directory, flag);
  // Windows has other means, and the user's own directories are private there.
  if (process.platform === "win32") return;
  const { mode, uid } = await stat(directory);
  await Promise.all(SECRETS.map((name) => takeFromOthers(`${directory}/${name}`)));
  if ((mode & OTHERS) === 0) return;
  if (uid === process.getuid?.() && (mode & STICKY) === 0 && await isOurs(directory)) {
    await chmod(directory, mode & OWNER_ONLY);
  } else {
    log.log("warn", `other users can look into --${flag} ${directory}: name a directory that is the engine's alone`);
  }
}

/** Others lose their rights to a file that is there and is ours. */
async function takeFromOthers(file: string): Promise<void> {
  try {
    const { mode, uid } = await stat(file);
    if (uid === process.getuid?.() && (mode & OTHERS) !== 0) await chmod(file, mode & OWNER_ONLY);
  } catch {
    // Not there.
  }
}

/** Whether a directory holds nothing, or something of ours. */
async function isOurs(directory: string): Promise<boolean> {
  if (directory === absolute(os.homedir()) || directory === path.parse(directory).root) return false;
  const names = await readdir(directory);
  return names.length === 0 || names.some((name) => OWN_NAMES.has(name));
}

/** Makes `directory` and proves that files can be written there; rejects with `config` and one clear line. */
export async function requireWritable(files: FilePort, directory: string, flag: string): Promise<void> {
  try {
    await files.makeDirectory(directory);
    const probe = `${directory}/.write-test-${process.pid}`;
    await files.writeFile(probe, new Uint8Array(1), { mode: 0o600 });
    await files.remove(probe);
  } catch (cause) {
    const why = (cause as MillraceError).detail?.["errno"] ?? (cause as Error).message;
    throw new MillraceError("config", `--${flag}: cannot write to ${directory} (${why})`, { cause });
  }
}

/** What `FilePort.writeFile` names a file until it is whole, and what `requireWritable` writes. */
const LEFTOVER = /\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$|^\.write-test-\d+$/;
/** Directories in the state directory that files are written to like that. */
const WRITTEN_DIRECTORIES = ["", "/transport", "/wrappers", "/broadcasts"];

/**
 * Removes files that an engine was writing when it was killed: nobody would ever finish or miss them. To be called by
 * whoever holds the lock of `stateDir`. What can't be removed stays.
 */
export async function removeLeftovers(files: FilePort, stateDir: string): Promise<void> {
  for (const directory of WRITTEN_DIRECTORIES.map((name) => stateDir + name)) {
    const names = await files.list(directory).catch(() => []);
    for (const name of names) if (LEFTOVER.test(name)) await files.remove(`${directory}/${name}`).catch(() => {});
  }
}
