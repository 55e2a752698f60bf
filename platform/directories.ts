/** Where the engine keeps its files when the user does not say. */
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { MillraceError } from "../src/errors.ts";
import type { FilePort } from "../src/ports.ts";

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
