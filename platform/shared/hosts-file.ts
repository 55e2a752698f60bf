/** The names that the user wrote into the system's hosts file. */
import fs from "node:fs/promises";
import process from "node:process";
import net from "node:net";

/** Largest file read, bytes: lists that block advertisements have some megabytes. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Where the system keeps it. */
export const HOSTS_PATH = process.platform === "win32"
  ? `${process.env["SystemRoot"] ?? "C:\\Windows"}\\System32\\drivers\\etc\\hosts`
  : "/etc/hosts";

/** Addresses by name in lower case, in the file's order. */
export function readHosts(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (net.isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      const addresses = found.get(key) ?? [];
      if (!addresses.includes(address)) addresses.push(address);
      found.set(key, addresses);
    }
  }
  return found;
}

/** A hosts file, read again when it has changed. */
export class HostsFile {
  readonly #path: string;
  #version = "";
  #names = new Map<string, string[]>();

  constructor(path: string = HOSTS_PATH) {
    this.#path = path;
  }

  /** Addresses of `name`; empty when the file has none, or cannot be read. */
  async find(name: string): Promise<readonly string[]> {
    try {
      const { mtimeMs, size, ino } = await fs.stat(this.#path);
      const version = `${mtimeMs} ${size} ${ino}`;
      if (version !== this.#version) {
        this.#names = size > MAX_BYTES ? new Map() : readHosts(await fs.readFile(this.#path, "utf8"));
        this.#version = version;
      }
    } catch {
      this.#names = new Map();
      this.#version = "";
    }
    return this.#names.get(name.toLowerCase()) ?? [];
  }
}
