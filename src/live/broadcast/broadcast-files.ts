/** What a broadcast keeps in its directory: key and position, transport file, addresses of viewers. */
import { hasCode, MillraceError } from "../../errors.ts";
import type { FilePort, SocketAddress } from "../../ports.ts";
import { addressKey, parseAddress } from "../../swarm/address.ts";
import { type LiveMetainfo, parseLiveTransportFile } from "../../metainfo/live.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../../metainfo/limits.ts";
import { type BroadcastState, readBroadcastState, writeBroadcastState } from "./broadcast-state.ts";

/** Addresses of viewers kept: a few that are still in the swarm are enough to find it again. */
const MAX_VIEWERS = 64;
const MAX_VIEWERS_BYTES = 64 * MAX_VIEWERS;
const PRIVATE_MODE = 0o600;

/** The files of one broadcast. Without a directory nothing is kept. */
export class BroadcastFiles {
  readonly #files: FilePort;
  readonly #directory: string | null;
  #savedViewers = "";

  constructor(files: FilePort, directory: string | null) {
    this.#files = files;
    this.#directory = directory;
  }

  /** Key and position; null at the first start. Rejects with `corrupt`. */
  async readState(): Promise<BroadcastState | null> {
    return this.#directory === null ? null : await readBroadcastState(this.#files, `${this.#directory}/state`);
  }

  async writeState(state: BroadcastState): Promise<void> {
    if (this.#directory === null) return;
    await this.#files.makeDirectory(this.#directory);
    await writeBroadcastState(this.#files, `${this.#directory}/state`, state);
  }

  /** The transport file of the last start; null without. */
  async readMetainfo(): Promise<LiveMetainfo | null> {
    const bytes = await this.#read("broadcast.torrent", MAX_TRANSPORT_FILE_BYTES);
    return bytes === null ? null : await parseLiveTransportFile(bytes);
  }

  async writeTransportFile(bytes: Uint8Array): Promise<void> {
    if (this.#directory !== null) await this.#files.writeFile(`${this.#directory}/broadcast.torrent`, bytes);
  }

  /** Where viewers listened last, as saved. */
  async readViewers(): Promise<SocketAddress[]> {
    const bytes = await this.#read("viewers", MAX_VIEWERS_BYTES).catch(() => null);
    const lines = bytes === null ? [] : new TextDecoder().decode(bytes).split("\n").slice(0, MAX_VIEWERS);
    return lines.map(parseAddress).filter((address) => address !== null);
  }

  /** Remembers where viewers listen, if that changed. Readable by the owner alone. */
  async writeViewers(addresses: readonly SocketAddress[]): Promise<void> {
    const text = addresses.slice(0, MAX_VIEWERS).map(addressKey).join("\n");
    if (this.#directory === null || text === "" || text === this.#savedViewers) return;
    this.#savedViewers = text;
    await this.#files.writeFile(`${this.#directory}/viewers`, new TextEncoder().encode(text), { mode: PRIVATE_MODE });
  }

  async #read(name: string, maxBytes: number): Promise<Uint8Array | null> {
    if (this.#directory === null) return null;
    try {
      return await this.#files.readFile(`${this.#directory}/${name}`, { maxBytes });
    } catch (error) {
      if (hasCode(error, "not_found")) return null;
      throw error;
    }
  }
}

/** The differences between a broadcast and the one that was kept under the same directory. */
export function identityConflict(kept: LiveMetainfo, wanted: LiveMetainfo): MillraceError {
  const fields = ["name", "bytesPerS", "pieceLengthBytes", "windowS", "isPrivate"] as const;
  const changed = fields.filter((field) => kept[field] !== wanted[field]);
  const list = changed.map((field) => `${field} ${JSON.stringify(kept[field])}`).join(", ");
  return new MillraceError(
    "conflict",
    `the directory holds another broadcast (${
      list || "another key"
    }): go on with these values, or use another directory`,
  );
}
