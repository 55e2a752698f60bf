/**
 * The native library of the database, which lies beside the built program. A running program has it mapped: whoever copies
 * a new release over that file would end it by SIGBUS or SIGSEGV. So an engine that serves loads a copy of its own.
 */
import { chmod, copyFile, type FileHandle, lstat, mkdir, open, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Logger } from "../../src/ports.ts";

/** Its name, beside the built program as well as in the state directory. */
const NAME = "libsql.node";
/** Permissions of the copy and its directory: whoever can write there runs code as this user. */
const OWNER_ONLY = 0o700;
const WRITABLE_BY_OTHERS = 0o022;
/** Bytes compared at a time. */
const PART_BYTES = 256 * 1024;

let own: string | null = null;

/** Path of the copy to load; null: there is none, load the file beside the program. */
export function ownLibrary(): string | null {
  return own;
}

/**
 * Makes the copy, `lib/libsql.node` in `stateDir`, or takes the one that an earlier start made. One name for all
 * contents: two SQLite libraries in one process would drop each other's file locks. Does nothing when no library lies
 * beside the program. Never rejects: without a copy the log says which file must stay.
 */
export async function copyLibrary(
  stateDir: string,
  log: Pick<Logger, "log">,
  original: string = fileURLToPath(new URL(NAME, import.meta.url)),
): Promise<void> {
  if (!existsSync(original)) return;
  const directory = `${stateDir}/lib`;
  const copy = `${directory}/${NAME}`;
  const partial = `${copy}.${randomUUID()}.tmp`;
  try {
    await mkdir(directory, { mode: OWNER_ONLY }).catch(() => {});
    await requireOurs(directory, "isDirectory");
    if (!await isCopy(original, copy)) {
      await copyFile(original, partial);
      await chmod(partial, OWNER_ONLY);
      // A program that has the old copy mapped keeps it.
      await rename(partial, copy);
    }
    own = copy;
  } catch (error) {
    await rm(partial, { force: true }).catch(() => {});
    log.log("warn", `do not overwrite ${original} while the engine runs: no copy of it could be made`, { error });
  }
}

async function requireOurs(path: string, kind: "isDirectory" | "isFile"): Promise<void> {
  const found = await lstat(path);
  const isOurs = process.getuid === undefined ||
    (found.uid === process.getuid() && (found.mode & WRITABLE_BY_OTHERS) === 0);
  if (!found[kind]() || !isOurs) throw new Error(`${path} belongs to somebody else, or others can write to it`);
}

async function isCopy(original: string, copy: string): Promise<boolean> {
  const handles: FileHandle[] = [];
  try {
    await requireOurs(copy, "isFile");
    handles.push(await open(original), await open(copy));
    const [ours, theirs] = [new Uint8Array(PART_BYTES), new Uint8Array(PART_BYTES)];
    for (;;) {
      const [one, two] = await Promise.all([
        handles[0]!.read(ours, 0, PART_BYTES),
        handles[1]!.read(theirs, 0, PART_BYTES),
      ]);
      if (one.bytesRead !== two.bytesRead) return false;
      if (one.bytesRead === 0) return true;
      for (let i = 0; i < one.bytesRead; i++) if (ours[i] !== theirs[i]) return false;
    }
  } catch {
    return false;
  } finally {
    await Promise.all(handles.map((handle) => handle.close()));
  }
}
