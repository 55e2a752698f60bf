/** The recordings of an engine: what is recorded, what is to be, and what was. */
import * as z from "zod";
import { MillraceError } from "../errors.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { Clock, FilePort, Logger, Timer } from "../ports.ts";
import { record } from "./recorder.ts";
import { RecordingFile } from "./recording-file.ts";

/** Recordings kept and planned: a household's year. Each is three files, and some memory. */
const MAX_RECORDINGS = 1000;
/** Recorded at once: each is an upstream, and a writer to the disk. */
const MAX_AT_ONCE = 16;
/** Longest recording, s: a day. */
export const MAX_DURATION_S = 86_400;
/** Farthest start, s from now: timers of machines hold no more than 24 days. */
export const MAX_AHEAD_S = 20 * 86_400;
/** Longest description of a recording on disk, bytes. */
const MAX_FACTS_BYTES = 65_536;

/** What is recorded: an item of the library, or a stream as playback names it. */
export const WANTED = z.object({
  item: z.int().optional(),
  directUrl: z.string().optional(),
  contentId: z.string().optional(),
  infohash: z.string().optional(),
  url: z.string().optional(),
  magnet: z.string().optional(),
  /** The caller that asked for it may name addresses in the private network. */
  mayNamePrivate: z.boolean(),
});
/** See `WANTED`. */
export type RecordingTarget = z.output<typeof WANTED>;

const FACTS = z.object({
  title: z.string(),
  wanted: WANTED,
  /** Unix ms. */
  fromMs: z.int(),
  untilMs: z.int(),
  isOver: z.boolean(),
  error: z.string().nullable(),
});
type Facts = z.output<typeof FACTS>;

/** One recording, as callers see it. */
export interface RecordingFigures extends Omit<Facts, "isOver" | "wanted"> {
  /** 16 hexadecimal characters. */
  readonly id: string;
  readonly state: "planned" | "recording" | "done" | "failed";
  readonly sizeBytes: number;
  readonly durationMs: number;
}

interface Entry {
  readonly id: string;
  readonly facts: Facts;
  readonly file: RecordingFile;
  readonly stopping: AbortController;
  timer: Timer | null;
  running: Promise<void> | null;
}

/** What recordings need. */
export interface RecordingsParts {
  readonly files: FilePort;
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of all recordings together; 0: no limit. */
  readonly limitBytes: number;
  /** Starts an HLS session of what is wanted. */
  readonly start: (wanted: RecordingTarget, id: string, signal: AbortSignal) => Promise<AnySession>;
}

/** Starts, lists, plays and removes recordings. */
export class Recordings {
  readonly #parts: RecordingsParts;
  readonly #entries = new Map<string, Entry>();
  #isClosed = false;

  private constructor(parts: RecordingsParts) {
    this.#parts = parts;
  }

  /** Those of earlier runs. What was being recorded goes on, until its time is over. */
  static async load(parts: RecordingsParts): Promise<Recordings> {
    const recordings = new Recordings(parts);
    const { files, directory, log } = parts;
    const names = await files.list(directory).catch(() => []);
    for (const name of names.sort().slice(0, 4 * MAX_RECORDINGS)) {
      const id = /^([0-9a-f]{16})\.json$/.exec(name)?.[1];
      if (id === undefined) continue;
      try {
        const text = new TextDecoder().decode(
          await files.readFile(`${directory}/${name}`, { maxBytes: MAX_FACTS_BYTES }),
        );
        recordings.#add(id, FACTS.parse(JSON.parse(text)), await RecordingFile.load(files, `${directory}/${id}`));
      } catch (error) {
        log.log("warn", "a recording cannot be read", { recording: id, error });
      }
    }
    return recordings;
  }

  /** The newest first. */
  list(): readonly RecordingFigures[] {
    return [...this.#entries.values()].map(figuresOf).sort((a, b) => b.fromMs - a.fromMs);
  }

  /**
   * Records from `fromMs` to `untilMs` (Unix ms); a time that is over is now. Resolves with its id once it is on disk.
   * Rejects with `too_busy`, `disk_full`, or `io`.
   */
  async start(wanted: RecordingTarget, title: string, fromMs: number, untilMs: number): Promise<string> {
    if (this.#isClosed) throw new MillraceError("closed", "the engine is closing");
    if (this.#entries.size >= MAX_RECORDINGS) throw new MillraceError("too_busy", "too many recordings: delete some");
    this.#requireRoom(0);
    const bytes = crypto.getRandomValues(new Uint8Array(8));
    const id = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const { files, directory, clock } = this.#parts;
    await files.makeDirectory(directory);
    const facts = { title, wanted, fromMs: Math.max(fromMs, clock.now()), untilMs, isOver: false, error: null };
    const file = await RecordingFile.load(files, `${directory}/${id}`);
    const entry = this.#add(id, facts, file);
    await this.#save(entry);
    return id;
  }

  /** Ends a recording, and keeps what there is. Rejects with `not_found`. */
  async stop(id: string): Promise<void> {
    const entry = this.#get(id);
    this.#halt(entry, "stopped");
    await entry.running;
    await this.#over(entry, null);
  }

  /** Removes a recording from the disk. Rejects with `not_found`, or `io`. */
  async delete(id: string): Promise<void> {
    const entry = this.#get(id);
    this.#halt(entry, "deleted");
    await entry.running;
    await entry.file.remove();
    await this.#parts.files.remove(this.#factsPath(id));
    this.#entries.delete(id);
    entry.file.wake();
  }

  /** Its file, and whether more of it may come; null: there is none. */
  find(id: string): { readonly file: RecordingFile; readonly isGrowing: () => boolean } | null {
    const entry = this.#entries.get(id);
    return entry === undefined ? null : { file: entry.file, isGrowing: () => this.#isGrowing(entry) };
  }

  /** Ends; what is being recorded goes on in the next run. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const all = [...this.#entries.values()];
    for (const entry of all) this.#halt(entry, "the engine ends");
    await Promise.all(all.map(({ running }) => running));
    for (const { file } of all) file.wake();
  }

  #isGrowing(entry: Entry): boolean {
    return !this.#isClosed && !entry.facts.isOver && this.#entries.get(entry.id) === entry;
  }

  #get(id: string): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new MillraceError("not_found", "there is no recording with this id");
    return entry;
  }

  #add(id: string, facts: Facts, file: RecordingFile): Entry {
    const entry = { id, facts, file, stopping: new AbortController(), timer: null, running: null };
    this.#entries.set(id, entry);
    if (!facts.isOver) this.#plan(entry);
    return entry;
  }

  #plan(entry: Entry): void {
    const { clock } = this.#parts;
    const waitMs = entry.facts.fromMs - clock.now();
    const begin = () => void (entry.running = this.#run(entry));
    if (waitMs <= 0) return begin();
    entry.timer = clock.setTimeout(begin, waitMs);
  }

  #halt(entry: Entry, why: string): void {
    entry.timer?.cancel();
    entry.stopping.abort(new MillraceError("closed", why));
  }

  /** Records until its time is over; never rejects. */
  async #run(entry: Entry): Promise<void> {
    const { clock, log, start } = this.#parts;
    const { facts, file, stopping } = entry;
    const leftMs = facts.untilMs - clock.now();
    const end = new AbortController();
    const timer = clock.setTimeout(
      () => end.abort(new MillraceError("closed", "its time is over")),
      Math.max(0, leftMs),
    );
    let failure: string | null = null;
    try {
      if (leftMs > 0) {
        if (this.#runningNow() > MAX_AT_ONCE) throw new MillraceError("too_busy", "too many recordings at once");
        await record({
          clock,
          file,
          start: (signal) => start(facts.wanted, entry.id, signal),
          makeRoom: (bytes) => this.#requireRoom(bytes),
          told: (trouble) => facts.error = trouble === null ? null : messageOf(trouble),
        }, AbortSignal.any([stopping.signal, end.signal]));
      }
    } catch (error) {
      failure = messageOf(error);
      log.log("warn", "a recording failed", { recording: entry.id, error });
    } finally {
      timer.cancel();
      await file.close();
    }
    // Stopped, deleted, or the engine ends: whoever did that says what comes next.
    if (!stopping.signal.aborted) await this.#over(entry, failure);
  }

  async #over(entry: Entry, error: string | null): Promise<void> {
    entry.facts.isOver = true;
    entry.facts.error = error;
    entry.file.wake();
    await this.#save(entry).catch((fault) => {
      this.#parts.log.log("warn", "the end of a recording could not be saved", { recording: entry.id, error: fault });
    });
  }

  #runningNow(): number {
    return [...this.#entries.values()].filter((entry) => entry.running !== null && !entry.facts.isOver).length;
  }

  #requireRoom(bytes: number): void {
    const { limitBytes } = this.#parts;
    if (limitBytes === 0) return;
    const used = [...this.#entries.values()].reduce((sum, { file }) => sum + file.sizeBytes, 0);
    if (used + bytes <= limitBytes) return;
    throw new MillraceError(
      "disk_full",
      "the recordings fill the space that --recordings-limit gives them: delete some",
    );
  }

  async #save({ id, facts }: Entry): Promise<void> {
    await this.#parts.files.writeFile(this.#factsPath(id), new TextEncoder().encode(JSON.stringify(facts)));
  }

  #factsPath(id: string): string {
    return `${this.#parts.directory}/${id}.json`;
  }
}

function figuresOf({ id, facts, file, running }: Entry): RecordingFigures {
  const { title, fromMs, untilMs, isOver, error } = facts;
  const over = error !== null && file.segments.length === 0 ? "failed" : "done";
  const state = isOver ? over : running === null ? "planned" : "recording";
  return { id, title, fromMs, untilMs, error, state, sizeBytes: file.sizeBytes, durationMs: file.durationMs };
}

function messageOf(error: unknown): string {
  return error instanceof MillraceError ? error.message : "internal error";
}
