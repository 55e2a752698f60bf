/** What a broadcast keeps in its directory: key and position, transport file, addresses of viewers. */
import { hasCode, MillraceError } from "../../errors.ts";
import type { FilePort, Logger, SocketAddress } from "../../ports.ts";
import { addressKey, parseAddress } from "../../swarm/neighbours/address.ts";
import { type LiveMetainfo, parseLiveTransportFile } from "../../metainfo/live.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../../metainfo/limits.ts";
import { type BroadcastState, inNewEpoch, readBroadcastState, writeBroadcastState } from "./broadcast-state.ts";

/** Addresses of viewers kept: a few that are still in the swarm are enough to find it again. */
const MAX_VIEWERS = 64;
const MAX_VIEWERS_BYTES = 64 * MAX_VIEWERS;
const PRIVATE_MODE = 0o600;

/**
 * Exists while the state on disk is up to date. It is removed when the state cannot be written, which works on a full disk,
 * too.
 */
const MARK = "saved";

/** The files of one broadcast. Without a directory nothing is kept. */
export class BroadcastFiles {
  readonly #files: FilePort;
  readonly #directory: string | null;
  readonly #log: Logger;
  #savedViewers = "";
  #isBehind = false;

  constructor(files: FilePort, directory: string | null, log: Logger) {
    this.#files = files;
    this.#directory = directory;
    this.#log = log;
  }

  /** Key and position at the start, `nowMs` (Unix ms); null at the first one. Rejects with `corrupt`. */
  async readState(nowMs: number): Promise<BroadcastState | null> {
    if (this.#directory === null) return null;
    const state = await readBroadcastState(this.#files, `${this.#directory}/state`);
    return state === null || await this.#read(MARK, 1) !== null ? state : inNewEpoch(state, nowMs);
  }

  async writeState(state: BroadcastState): Promise<void> {
    if (this.#directory === null) return;
    await this.#files.makeDirectory(this.#directory);
    await writeBroadcastState(this.#files, `${this.#directory}/state`, state);
    await this.#files.writeFile(`${this.#directory}/${MARK}`, new Uint8Array());
  }

  /**
   * As `writeState`, for a broadcast that is on the air: when the disk takes nothing, it goes on from memory. The next call
   * tries again.
   */
  async keepState(state: BroadcastState): Promise<void> {
    try {
      if (this.#isBehind) await this.writeState(state);
      else if (this.#directory !== null) {
        await writeBroadcastState(this.#files, `${this.#directory}/state`, state);
      }
      if (this.#isBehind) this.#log.log("info", "the position of a broadcast is saved again");
      this.#isBehind = false;
    } catch (error) {
      if (!this.#isBehind) {
        this.#log.log("warn", "the position of a broadcast cannot be saved; it goes on, and tries again", { error });
        await this.#files.remove(`${this.#directory}/${MARK}`).catch(() => {});
      }
      this.#isBehind = true;
    }
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
