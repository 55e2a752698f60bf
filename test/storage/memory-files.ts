/** An in-memory file system that fails, loses power and drops unflushed data on demand. */
import { MillraceError } from "../../src/errors.ts";
import type { Clock, FileHandle, FileInfo, FilePort } from "../../src/ports.ts";

interface Node {
  bytes: Uint8Array;
  modifiedMs: number;
  /** Contents at the last flush. */
  durable: Uint8Array;
  /** Writes since then. */
  pending: { data: Uint8Array; position: number }[];
}

/** What `MemoryFiles.hook` receives. */
export type FileOperation = "open" | "read" | "write" | "sync" | "replace" | "info" | "list" | "remove" | "rename";

/** Files in memory that a test can break. */
export class MemoryFiles implements FilePort {
  readonly nodes = new Map<string, Node>();
  readonly directories = new Set<string>();
  readonly counts: Partial<Record<FileOperation, number>> = {};
  openHandles = 0;
  /** Runs before each operation; if it throws, the caller gets that error; a promise delays the operation. */
  hook: (operation: FileOperation, path: string) => void | Promise<void> = () => {};
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async open(path: string, mode: "read" | "write"): Promise<FileHandle> {
    await this.#step("open", path);
    let node = this.nodes.get(path);
    if (node === undefined) {
      if (mode === "read" || !this.directories.has(parent(path))) throw missing(path);
      node = { bytes: new Uint8Array(), modifiedMs: this.#clock.now(), durable: new Uint8Array(), pending: [] };
      this.nodes.set(path, node);
    }
    this.openHandles++;
    return this.#handle(path, node);
  }

  async readFile(path: string): Promise<Uint8Array> {
    await this.#step("read", path);
    return this.#node(path).bytes.slice();
  }

  async writeFile(path: string, data: Uint8Array): Promise<void> {
    await this.#step("replace", path);
    this.nodes.set(path, { bytes: data.slice(), modifiedMs: this.#clock.now(), durable: data.slice(), pending: [] });
  }

  async info(path: string): Promise<FileInfo> {
    await this.#step("info", path);
    const { bytes, modifiedMs } = this.#node(path);
    return { sizeBytes: bytes.length, modifiedMs, isDirectory: false };
  }

  async list(path: string): Promise<string[]> {
    await this.#step("list", path);
    const below = [...this.nodes.keys(), ...this.directories].filter((name) => name.startsWith(`${path}/`));
    return [...new Set(below.map((name) => name.slice(path.length + 1).split("/")[0]!))];
  }

  makeDirectory(path: string): Promise<void> {
    for (let at = path; at !== ""; at = parent(at)) this.directories.add(at);
    return Promise.resolve();
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#step("rename", from);
    this.nodes.set(to, this.#node(from));
    this.nodes.delete(from);
  }

  async remove(path: string): Promise<void> {
    await this.#step("remove", path);
    for (const name of [...this.nodes.keys()]) {
      if (name === path || name.startsWith(`${path}/`)) this.nodes.delete(name);
    }
  }

  removeEmptyDirectory(path: string): Promise<boolean> {
    if ([...this.nodes.keys(), ...this.directories].some((name) => name.startsWith(`${path}/`))) {
      return Promise.resolve(false);
    }
    return Promise.resolve(this.directories.delete(path));
  }

  /** Changes a file as another program would. */
  change(path: string, edit: (bytes: Uint8Array) => Uint8Array): void {
    const node = this.#node(path);
    node.bytes = edit(node.bytes.slice());
    node.modifiedMs = this.#clock.now();
  }

  /** The disk after a power cut: each unflushed write arrived, or didn't, or in part. */
  afterCrash(random: () => number): MemoryFiles {
    const next = new MemoryFiles(this.#clock);
    for (const directory of this.directories) next.directories.add(directory);
    for (const [path, node] of this.nodes) {
      let bytes: Uint8Array = node.durable.slice();
      for (const { data, position } of node.pending) {
        const fate = random();
        if (fate < 0.3) continue;
        bytes = splice(bytes, fate < 0.6 ? data.subarray(0, Math.floor(random() * data.length)) : data, position);
      }
      next.nodes.set(path, { bytes, modifiedMs: node.modifiedMs, durable: bytes.slice(), pending: [] });
    }
    return next;
  }

  #handle(path: string, node: Node): FileHandle {
    let open = true;
    const step = async (operation: FileOperation): Promise<void> => {
      if (!open) throw new MillraceError("closed", `${path} was closed`);
      await this.#step(operation, path);
    };
    return {
      read: async (into, position) => {
        await step("read");
        const part = node.bytes.subarray(position, position + into.length);
        into.set(part);
        return part.length;
      },
      write: async (data, position) => {
        await step("write");
        node.bytes = splice(node.bytes, data, position);
        node.pending.push({ data: data.slice(), position });
        node.modifiedMs = this.#clock.now();
      },
      truncate: async (sizeBytes) => {
        await step("write");
        node.bytes = splice(node.bytes.slice(0, sizeBytes), new Uint8Array(), sizeBytes);
      },
      info: () => this.info(path),
      sync: async () => {
        await step("sync");
        node.durable = node.bytes.slice();
        node.pending = [];
      },
      close: () => {
        if (open) this.openHandles--;
        open = false;
        return Promise.resolve();
      },
    };
  }

  #node(path: string): Node {
    const node = this.nodes.get(path);
    if (node === undefined) throw missing(path);
    return node;
  }

  async #step(operation: FileOperation, path: string): Promise<void> {
    this.counts[operation] = (this.counts[operation] ?? 0) + 1;
    await this.hook(operation, path);
  }
}

const parent = (path: string): string => path.slice(0, path.lastIndexOf("/"));
const missing = (path: string): MillraceError => new MillraceError("not_found", `${path} does not exist`);

function splice(bytes: Uint8Array, data: Uint8Array, position: number): Uint8Array {
  const end = position + data.length;
  const grown = end > bytes.length ? new Uint8Array(end) : bytes;
  if (grown !== bytes) grown.set(bytes);
  grown.set(data, position);
  return grown;
}
