/**
 * A folder of `.strm` files (`--strm-dir`): media centres take each for a film or an episode, and play the address in it. It
 * follows the library. Files of others are neither changed nor removed.
 */
import * as z from "zod";
import { sleep } from "../../../bytes/deadline.ts";
import type { Clock, FilePort, Logger } from "../../../ports.ts";
import type { FrontState, FrontStates } from "../states.ts";
import { foldedName } from "./names.ts";
import { MAX_FILES, type StrmLibrary, wantedFiles } from "./wanted.ts";

/** Changes of the library are looked at this often, ms. */
const LOOK_EVERY_MS = 5000;
/** After this everything is compared even without a change, ms: descriptions of torrents become known, keys are replaced. */
const COMPARE_EVERY_MS = 600_000;
/** Media centres run as users of their own. */
const PERMISSIONS = { file: 0o644, directory: 0o755 } as const;
/** Largest file that is compared with what was written, bytes. */
const MAX_FILE_BYTES = 4096;
/** What the state holds: addresses by the paths of the files that were made. */
const MADE = z.record(z.string(), z.string()).refine((made) => Object.keys(made).length <= 2 * MAX_FILES);

/** What the folder needs. */
export interface StrmParts {
  readonly directory: string;
  readonly files: FilePort;
  readonly library: StrmLibrary;
  readonly states: FrontStates;
  /** Makes keys of addresses, as `playbackKeys`; they change with the access token. */
  readonly keys: () => Promise<(kind: string, value: string) => Promise<string>>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Keeps the folder. */
export class StrmFolder {
  readonly #parts: StrmParts;
  readonly #closing = new AbortController();
  #running: Promise<void> | null = null;

  constructor(parts: StrmParts) {
    this.#parts = parts;
  }

  /** Begins. `base`: what addresses begin with, such as `http://127.0.0.1:6878`. */
  start(base: string): void {
    this.#running ??= this.#run(base);
  }

  /** Resolves when nothing is written any more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(base: string): Promise<void> {
    const { clock, library, states, log } = this.#parts;
    const { signal } = this.#closing;
    const state = await states.open("strm", MADE, {});
    const made = new Map(Object.entries(state.value));
    let [seen, comparedMs]: [number | null, number] = [null, -Infinity];
    let isFailing = false;
    while (!signal.aborted) {
      try {
        const version = await library.catalogue.version();
        if (version !== seen || clock.monotonic() - comparedMs >= COMPARE_EVERY_MS) {
          await this.#follow(base, made, state);
          [seen, comparedMs] = [version, clock.monotonic()];
        }
        isFailing = false;
      } catch (error) {
        if (!signal.aborted && !isFailing) {
          log.log("warn", "the folder of .strm files does not follow the library", { error });
        }
        isFailing = true;
      }
      await sleep(clock, LOOK_EVERY_MS, signal).catch(() => {});
    }
  }

  /** Makes the folder what the library says. A file that cannot be written or removed costs that file alone. */
  async #follow(base: string, made: Map<string, string>, state: FrontState<Record<string, string>>): Promise<void> {
    const { library, keys, log } = this.#parts;
    const { signal } = this.#closing;
    const failures: unknown[] = [];
    const each = async (path: string, address: string, change: (path: string, address: string) => Promise<boolean>) => {
      signal.throwIfAborted();
      try {
        if (await change(path, address)) state.changed(() => Object.fromEntries(made));
      } catch (error) {
        failures.push(error);
      }
    };
    const keyOf = await keys();
    const wanted = await wantedFiles(library, async (query, kind, value) => {
      query.set("key", await keyOf(kind, value));
      return `${base}/engine/getfile?${query}`;
    }, signal);
    for (const [own, written] of [...made]) {
      await each(own, written, async (path, address) => {
        if (wanted.has(path)) return false;
        if (await this.#holds(path, address)) await this.#remove(path);
        return made.delete(path);
      });
    }
    const folders = new Map<string, Promise<ReadonlySet<string>>>();
    for (const [one, named] of wanted) {
      await each(one, named, async (path, address) => {
        const [folder, name] = parted(path);
        let names = folders.get(folder);
        if (names === undefined) folders.set(folder, names = this.#namesIn(folder));
        const before = made.get(path);
        if ((await names).has(foldedName(name))) {
          if (before === address) return false;
          // Another's file of this name, or ours as somebody changed it.
          const isOurs = before !== undefined && await this.#holds(path, before);
          if (!isOurs && !await this.#holds(path, address)) return false;
        }
        await this.#write(path, address);
        made.set(path, address);
        return true;
      });
    }
    if (failures.length === 0) return;
    log.log("warn", "some .strm files could not be written or removed", { files: failures.length, error: failures[0] });
  }

  /** Names in a folder, which is made if it is not there. */
  async #namesIn(folder: string): Promise<ReadonlySet<string>> {
    const { files, directory } = this.#parts;
    await files.makeDirectory(`${directory}/${folder}`, { permissions: PERMISSIONS.directory });
    return new Set((await files.list(`${directory}/${folder}`)).map(foldedName));
  }

  async #write(path: string, address: string): Promise<void> {
    const { files, directory } = this.#parts;
    await files.writeFile(`${directory}/${path}`, textOf(address), { mode: PERMISSIONS.file });
  }

  /** Whether the file holds what was written into it. */
  async #holds(path: string, address: string): Promise<boolean> {
    const { files, directory } = this.#parts;
    try {
      const bytes = await files.readFile(`${directory}/${path}`, { maxBytes: MAX_FILE_BYTES });
      return new TextDecoder().decode(bytes) === new TextDecoder().decode(textOf(address));
    } catch {
      return false;
    }
  }

  /** Removes a file, and the folders that it leaves empty. */
  async #remove(path: string): Promise<void> {
    const { files, directory } = this.#parts;
    await files.remove(`${directory}/${path}`);
    for (let [folder] = parted(path); folder.includes("/"); [folder] = parted(folder)) {
      if (!await files.removeEmptyDirectory(`${directory}/${folder}`)) return;
    }
  }
}

const textOf = (address: string) => new TextEncoder().encode(`${address}\n`);

/** The folder of a path, and the name in it. */
function parted(path: string): readonly [folder: string, name: string] {
  const slash = path.lastIndexOf("/");
  return [path.slice(0, slash), path.slice(slash + 1)];
}
