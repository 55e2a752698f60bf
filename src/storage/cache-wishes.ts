/** What the user wants of the cache beyond the options: which torrents stay, and another limit. On disk it lasts in one file. */
import { MillraceError } from "../errors.ts";
import type { FilePort, Logger } from "../ports.ts";
import type { UnitLru } from "./unit-lru.ts";

/**
 * Share of the limit that kept torrents may fill once they are whole: what plays needs the rest for its read-ahead, for
 * what was just read and for pieces under way.
 */
const MAX_KEPT_SHARE = 1 / 2;

/** Largest file read: 60 bytes for each kept torrent. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** Where the wishes last. */
export interface WishFile {
  readonly files: Pick<FilePort, "readFile" | "writeFile">;
  readonly path: string;
  readonly log: Pick<Logger, "log">;
}

/** Which torrents are kept, and the limit. */
export class CacheWishes {
  readonly #lru: UnitLru;
  readonly #file: WishFile | null;
  /** The limit that the cache was opened with. */
  readonly optionBytes: number;
  /** Kept torrents with their whole size, bytes. */
  readonly #kept = new Map<string, number>();
  #saving: Promise<void> = Promise.resolve();

  /** `file` null: the wishes last as long as the process. */
  constructor(lru: UnitLru, file: WishFile | null) {
    this.#lru = lru;
    this.#file = file;
    this.optionBytes = lru.limitBytes;
  }

  isKept(infohashHex: string): boolean {
    return this.#kept.has(infohashHex);
  }

  /** Reads what was wished in an earlier run. A limit holds as long as the option stays what it was then. */
  async load(): Promise<void> {
    if (this.#file === null) return;
    const { files, path } = this.#file;
    let wishes: unknown;
    try {
      wishes = JSON.parse(new TextDecoder().decode(await files.readFile(path, { maxBytes: MAX_FILE_BYTES })));
    } catch {
      // Missing or damaged: the options alone hold.
      return;
    }
    const { limit, kept } = (typeof wishes === "object" && wishes !== null ? wishes : {}) as Record<string, unknown>;
    for (const [id, bytes] of Array.isArray(kept) ? kept.filter(isKeptEntry) : []) this.#kept.set(id, bytes);
    if (!Array.isArray(limit) || !limit.every(isBytes)) return;
    const [bytes, insteadOf] = limit;
    if (bytes !== undefined && insteadOf === this.optionBytes) await this.#lru.setLimit(bytes);
  }

  /** @throws `too_large` when kept torrents could fill too much of the limit */
  async keep(infohashHex: string, wholeBytes: number): Promise<void> {
    const others = this.#keptBytes() - (this.#kept.get(infohashHex) ?? 0);
    const { limitBytes } = this.#lru;
    if (limitBytes > 0 && others + wholeBytes > limitBytes * MAX_KEPT_SHARE) {
      throw new MillraceError(
        "too_large",
        `kept torrents may need half of the cache's ${limitBytes} bytes, and with this one they would need ${
          others + wholeBytes
        }: raise the limit, or unmark others`,
      );
    }
    this.#kept.set(infohashHex, wholeBytes);
    await this.#save();
  }

  async letGo(infohashHex: string): Promise<void> {
    if (this.#kept.delete(infohashHex)) await this.#save();
  }

  /** Unmarks all but those for which `isStored` is true. */
  async retain(isStored: (infohashHex: string) => boolean): Promise<void> {
    const gone = [...this.#kept.keys()].filter((id) => !isStored(id));
    for (const id of gone) this.#kept.delete(id);
    if (gone.length > 0) await this.#save();
  }

  /** @throws `conflict` when kept torrents need more than half of it */
  async setLimit(limitBytes: number): Promise<void> {
    if (limitBytes > 0 && this.#keptBytes() > limitBytes * MAX_KEPT_SHARE) {
      throw new MillraceError(
        "conflict",
        `kept torrents need ${this.#keptBytes()} bytes, and may need half of the limit: unmark some, or choose more`,
      );
    }
    await this.#lru.setLimit(limitBytes);
    await this.#save();
  }

  #keptBytes(): number {
    return [...this.#kept.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** One write at a time, each with the newest wishes. A disk that refuses them costs only that they do not last. */
  #save(): Promise<void> {
    if (this.#file === null) return this.#saving;
    const { files, path, log } = this.#file;
    this.#saving = this.#saving.then(async () => {
      const wishes = { version: 1, limit: [this.#lru.limitBytes, this.optionBytes], kept: [...this.#kept] };
      await files.writeFile(path, new TextEncoder().encode(JSON.stringify(wishes)));
    }).catch((error) => {
      log.log("warn", "what the cache is to keep could not be written; it holds until the engine ends", { error });
    });
    return this.#saving;
  }
}

const isBytes = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

function isKeptEntry(entry: unknown): entry is [string, number] {
  return Array.isArray(entry) && entry.length === 2 && /^[0-9a-f]{40}$/.test(String(entry[0])) && isBytes(entry[1]);
}
