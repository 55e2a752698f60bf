/** What fronts remember over restarts: one JSON file each, in the state directory. */
import type * as z from "zod";
import { hasCode } from "../../errors.ts";
import type { Clock, FilePort, Logger, Timer } from "../../ports.ts";

/** Changes are written together after this, ms. */
const WRITE_DELAY_MS = 1000;
/** Largest file that is read, bytes: a front bounds what it keeps far below it. */
const MAX_FILE_BYTES = 32 * 1024 * 1024;
/** Only the owner may read it: it says what is watched. */
const SECRET_MODE = 0o600;

/** Where the files are. */
export interface StatePlace {
  readonly files: Pick<FilePort, "readFile" | "writeFile" | "makeDirectory">;
  /** null: nothing outlives the engine. */
  readonly stateDir: string | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The state of one front. */
export interface FrontState<T> {
  /** What was kept. */
  readonly value: T;
  /** Has what `now` returns written soon. */
  changed(now: () => T): void;
}

/** Opens and closes the states of an engine's fronts. */
export class FrontStates {
  readonly #place: StatePlace;
  readonly #writers: (() => Promise<void>)[] = [];

  constructor(place: StatePlace) {
    this.#place = place;
  }

  /** What `name` kept, else `initial`: a file that is damaged or of another form is logged and replaced. Never rejects. */
  async open<T>(name: string, schema: z.ZodType<T>, initial: T): Promise<FrontState<T>> {
    const { files, stateDir, clock, log } = this.#place;
    if (stateDir === null) return { value: initial, changed: () => {} };
    const directory = `${stateDir}/fronts`;
    const path = `${directory}/${name}.json`;
    let value = initial;
    try {
      const bytes = await files.readFile(path, { maxBytes: MAX_FILE_BYTES });
      value = schema.parse(JSON.parse(new TextDecoder().decode(bytes)));
    } catch (error) {
      if (!hasCode(error, "not_found")) {
        log.log("warn", "what a front kept is unreadable: it begins with nothing", { name });
      }
    }
    let timer: Timer | null = null;
    let now = () => value;
    let writing: Promise<void> = Promise.resolve();
    const write = () => {
      timer = null;
      writing = writing.then(async () => {
        await files.makeDirectory(directory);
        await files.writeFile(path, new TextEncoder().encode(JSON.stringify(now())), { mode: SECRET_MODE });
      }).catch((error) => log.log("warn", "what a front keeps could not be saved", { name, error }));
    };
    this.#writers.push(async () => {
      timer?.cancel();
      if (timer !== null) write();
      await writing;
    });
    const changed = (made: () => T) => {
      now = made;
      timer ??= clock.setTimeout(write, WRITE_DELAY_MS);
    };
    return { value, changed };
  }

  /** Resolves when everything is written. */
  async close(): Promise<void> {
    await Promise.all(this.#writers.map((end) => end()));
  }
}
