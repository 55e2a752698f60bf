/**
 * The file port on node:fs, which all three runtimes have. It uses the callback functions on purpose: through the promise
 * API one of the runtimes writes at a tenth of the speed.
 */
import fs from "node:fs";
import { randomUUID } from "node:crypto";
import { MillraceError } from "../../src/errors.ts";
import type { FileHandle, FileInfo, FilePort } from "../../src/ports.ts";
import { fileError } from "./os-error.ts";

type Callback<T> = (error: Error | null, value?: T) => void;

/** Runs one callback function; its error becomes a MillraceError. */
function run<T>(action: string, path: string, start: (done: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const done: Callback<T> = (error, value) => error ? reject(fileError(error, action, path)) : resolve(value as T);
    try {
      start(done);
    } catch (error) {
      reject(fileError(error, action, path));
    }
  });
}

function toInfo(stats: fs.Stats): FileInfo {
  return { sizeBytes: stats.size, modifiedMs: stats.mtimeMs, isDirectory: stats.isDirectory() };
}

class SharedFileHandle implements FileHandle {
  readonly #fd: number;
  readonly #path: string;
  #closed = false;

  constructor(fd: number, path: string) {
    this.#fd = fd;
    this.#path = path;
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    let filled = 0;
    while (filled < into.length) {
      const count = await this.#run<number>(
        "read",
        (done) => fs.read(this.#fd, into, filled, into.length - filled, position + filled, done),
      );
      if (count === 0) break;
      filled += count;
    }
    return filled;
  }

  async write(data: Uint8Array, position: number): Promise<void> {
    for (let written = 0; written < data.length;) {
      written += await this.#run<number>(
        "write",
        (done) => fs.write(this.#fd, data, written, data.length - written, position + written, done),
      );
    }
  }

  truncate(sizeBytes: number): Promise<void> {
    return this.#run("truncate", (done) => fs.ftruncate(this.#fd, sizeBytes, done));
  }

  async info(): Promise<FileInfo> {
    return toInfo(await this.#run<fs.Stats>("examine", (done) => fs.fstat(this.#fd, done)));
  }

  sync(): Promise<void> {
    return this.#run("flush", (done) => fs.fsync(this.#fd, done));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await run("close", this.#path, (done) => fs.close(this.#fd, done));
  }

  /** Refuses calls after close: by then the descriptor's number may belong to another file. */
  #run<T>(action: string, start: (done: Callback<T>) => void): Promise<T> {
    if (this.#closed) {
      return Promise.reject(new MillraceError("closed", "the file was closed", { detail: { path: this.#path } }));
    }
    return run(action, this.#path, start);
  }
}

/** Modes of what the engine makes, unless it is for others: names and times alone show what was watched. */
const OWNER_FILE = 0o600;
const OWNER_DIRECTORY = 0o700;

async function open(path: string, flags: number, mode = OWNER_FILE): Promise<SharedFileHandle> {
  const fd = await run<number>("open", path, (done) => fs.open(path, flags, mode, done));
  return new SharedFileHandle(fd, path);
}

const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL } = fs.constants;
/** Without it, opening a named pipe without a writer would block a thread forever, and so keep the process from ending. */
const O_NONBLOCK = (fs.constants as { O_NONBLOCK?: number }).O_NONBLOCK ?? 0;

/** The file system of this machine. */
export const files: FilePort = {
  open: (path, mode, options) =>
    open(path, mode === "read" ? O_RDONLY | O_NONBLOCK : O_RDWR | O_CREAT, options?.permissions),

  async readFile(path, { maxBytes = Infinity } = {}) {
    const handle = await open(path, O_RDONLY);
    try {
      const { sizeBytes, isDirectory } = await handle.info();
      if (isDirectory) throw new MillraceError("io", "cannot read a directory as a file", { detail: { path } });
      if (sizeBytes > maxBytes) {
        throw new MillraceError("too_large", `the file is larger than ${maxBytes} bytes`, { detail: { path } });
      }
      const bytes = new Uint8Array(sizeBytes);
      const count = await handle.read(bytes, 0);
      return count === sizeBytes ? bytes : bytes.slice(0, count);
    } finally {
      await handle.close();
    }
  },

  async writeFile(path, data, { mode = OWNER_FILE } = {}) {
    const temporary = `${path}.${randomUUID()}.tmp`;
    const handle = await open(temporary, O_RDWR | O_CREAT | O_EXCL, mode);
    try {
      try {
        // The process's umask may have cleared bits of the mode.
        await run("set the mode of", temporary, (done: Callback<void>) => fs.chmod(temporary, mode, done));
        await handle.write(data, 0);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await files.rename(temporary, path);
    } catch (error) {
      await files.remove(temporary).catch(() => {});
      throw error;
    }
  },

  async info(path) {
    return toInfo(await run<fs.Stats>("examine", path, (done) => fs.stat(path, done)));
  },

  list: (path) => run<string[]>("list", path, (done) => fs.readdir(path, done)),

  async makeDirectory(path, { permissions = OWNER_DIRECTORY } = {}) {
    await run(
      "create",
      path,
      (done: Callback<unknown>) => fs.mkdir(path, { recursive: true, mode: permissions }, done),
    );
  },

  rename: (from, to) => run<void>("rename", from, (done) => fs.rename(from, to, done)),

  remove: (path) => run<void>("remove", path, (done) => fs.rm(path, { recursive: true, force: true }, done)),

  removeEmptyDirectory: (path) => run<boolean>("remove", path, (done) => fs.rmdir(path, (error) => done(null, !error))),
};
