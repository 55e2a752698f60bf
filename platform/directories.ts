/** Chooses the engine's directories and makes them ready. */
import { chmod, mkdir, readdir, stat } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { MillraceError } from "../src/errors.ts";
import type { FilePort, Ports } from "../src/ports.ts";
import { STATE_LAYOUT } from "./state-layout.ts";

/** Absolute directories with `/` between their parts. */
export interface Directories {
  readonly stateDir: string;
  readonly cacheDir: string;
}

/** The configured directories, or else the usual ones of the operating system. */
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
  // XDG Base Directory Specification 0.8: relative paths in these variables must be ignored.
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
/** Permissions of other users, and the sticky bit of directories that everybody shares (`/tmp`). */
const OTHERS = 0o077;
const STICKY = 0o1000;

/** Files and directories that the engine makes in its state directory and that outlast a run. */
const OWN_NAMES: ReadonlySet<string> = new Set(STATE_LAYOUT.map(({ name }) => name.replace(/\/$/, "")));

/** What the engine keeps in its cache directory: torrents by infohash. Their names and times show what was watched. */
const CACHED = /^[0-9a-f]{40}(?:\.resume)?$/;

/** Files that hold secrets. The engine makes them with mode 600; one copied from elsewhere may have another mode. */
const SECRETS = STATE_LAYOUT.filter(({ isSecret }) => isSecret).map(({ name }) => name)
  .concat(["-wal", "-shm"].map((end) => `millrace.db${end}`));

/**
 * As `requireWritable`, for a directory that holds secrets or torrents: only its owner may read it (mode 700) and those.
 * The mode of an existing directory is corrected if nothing suggests that others use it too; otherwise a warning is logged.
 */
export async function requirePrivate(
  { files, log }: Pick<Ports, "files" | "log">,
  directory: string,
  flag: string,
): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: OWNER_ONLY });
  } catch {
    // `requireWritable` below fails as well, and says why.
  }
  await requireWritable(files, directory, flag);
  // Windows has no such modes, and the user's own directories are private there.
  if (process.platform === "win32") return;
  const { mode, uid } = await stat(directory);
  const cached = (await readdir(directory)).filter((name) => CACHED.test(name));
  await Promise.all([...SECRETS, ...cached].map((name) => takeFromOthers(`${directory}/${name}`)));
  if ((mode & OTHERS) === 0) return;
  if (uid === process.getuid?.() && (mode & STICKY) === 0 && await isOurs(directory)) {
    await chmod(directory, mode & OWNER_ONLY);
  } else {
    log.log("warn", `other users can look into --${flag} ${directory}: name a directory that only the engine uses`);
  }
}

/** Takes other users' permissions from a file, if it exists and belongs to us. */
async function takeFromOthers(file: string): Promise<void> {
  try {
    const { mode, uid } = await stat(file);
    if (uid === process.getuid?.() && (mode & OTHERS) !== 0) await chmod(file, mode & OWNER_ONLY);
  } catch {
    // The file does not exist.
  }
}

/** Whether a directory is empty or holds something of ours. */
async function isOurs(directory: string): Promise<boolean> {
  if (directory === absolute(os.homedir()) || directory === path.parse(directory).root) return false;
  const names = await readdir(directory);
  return names.length === 0 || names.some((name) => OWN_NAMES.has(name) || CACHED.test(name));
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

/** Matches the names that `FilePort.writeFile` gives files until they are whole, and the probe file of `requireWritable`. */
const LEFTOVER = /\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$|^\.write-test-\d+$/;
/** The state directory's own folders in which such files may be left. */
const WRITTEN_DIRECTORIES = ["", "/transport", "/wrappers", "/broadcasts", "/lib"];

/**
 * Removes files that an engine was writing when it was killed: nobody would ever finish or miss them. The caller must hold
 * the lock of `stateDir`. Files that cannot be removed stay.
 */
export async function removeLeftovers(files: FilePort, stateDir: string): Promise<void> {
  for (const directory of WRITTEN_DIRECTORIES.map((name) => stateDir + name)) {
    const names = await files.list(directory).catch(() => []);
    for (const name of names) if (LEFTOVER.test(name)) await files.remove(`${directory}/${name}`).catch(() => {});
  }
}
