/** Runs ffmpeg and ffprobe on untrusted files: bounded, with deadlines, and without access to anything but that file. */
import { deadline, withSignal } from "../../bytes/deadline.ts";
import type { ByteSource } from "../../bytes/source.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { ChildProcess, Clock, HttpPort, ProcessPort } from "../../ports.ts";
import { type Door, DoorKeeper } from "./file-door.ts";
import type { ForeignJob, ForeignReader, ForeignRun } from "./types.ts";

/** Most programs at once: each takes 20 to 60 MB. */
export const MAX_PROGRAMS = 12;
/** A program that neither reads nor writes for this long hangs, ms. */
export const PATIENCE_MS = 30_000;
/** Deadline of `-version`, ms. */
const VERSION_MS = 5000;
/** Most bytes kept of a program's error output. */
const MAX_COMPLAINT_BYTES = 2048;
/** Largest single allocation of a program, bytes: frames of 8K video take 50 MB. */
const MAX_ALLOC_BYTES = 256 * 1024 * 1024;

/** Options before the input: they force its format, forbid it to open anything else, and bypass proxies. */
export function inputArguments(demuxer: string): string[] {
  return [
    ...["-hide_banner", "-loglevel", "error", "-max_alloc", String(MAX_ALLOC_BYTES)],
    ...["-protocol_whitelist", "http,tcp", "-format_whitelist", demuxer, "-f", demuxer],
  ];
}

const ENVIRONMENT = { http_proxy: "", no_proxy: "*" };

/** One per engine: it bounds the programs of all streams together. */
export class ForeignPrograms implements ForeignReader {
  readonly #processes: ProcessPort;
  readonly #clock: Clock;
  readonly #doors: DoorKeeper;
  #running = 0;
  #found = false;

  constructor(processes: ProcessPort, http: HttpPort, clock: Clock) {
    this.#processes = processes;
    this.#clock = clock;
    this.#doors = new DoorKeeper(http);
  }

  async isAvailable(signal: AbortSignal): Promise<boolean> {
    for (const program of this.#found ? [] : ["ffmpeg", "ffprobe"]) {
      const late = deadline(this.#clock, VERSION_MS, signal);
      let child: ChildProcess | null = null;
      try {
        child = await this.#processes.spawn(program, ["-version"]);
        void child.stdin.close().catch(() => {});
        const ended = Promise.all([drain(child.stdout), drain(child.stderr), child.exited]);
        await withSignal(ended, late.signal);
      } catch {
        if (signal.aborted) throw abortError(signal);
        return false;
      } finally {
        child?.kill("SIGKILL");
        late.cancel();
      }
    }
    return this.#found = true;
  }

  async open(job: ForeignJob, source: ByteSource, signal: AbortSignal): Promise<ForeignRun> {
    if (signal.aborted) throw abortError(signal);
    if (this.#running >= MAX_PROGRAMS) {
      throw new MillraceError("too_busy", `${MAX_PROGRAMS} files that only ffmpeg reads are open: try again later`);
    }
    this.#running++;
    let door: Door | null = null;
    let child: ChildProcess | null = null;
    try {
      door = await this.#doors.open(source);
      child = await this.#processes.spawn(job.program, job.arguments(door.url), { env: ENVIRONMENT });
      if (signal.aborted) throw abortError(signal);
      return new Program(job, door, child, this.#clock, () => this.#running--);
    } catch (error) {
      this.#running--;
      child?.kill("SIGKILL");
      door?.close();
      throw error;
    }
  }
}

/** A running program. */
class Program implements ForeignRun {
  readonly #job: ForeignJob;
  readonly #door: Door;
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  readonly #closed: () => void;
  readonly #output: ReadableStreamDefaultReader<Uint8Array>;
  readonly #complaint: Promise<string>;
  #reading: Promise<ReadableStreamReadResult<Uint8Array>> | null = null;
  #givenBytes = 0;
  #isClosed = false;

  constructor(job: ForeignJob, door: Door, child: ChildProcess, clock: Clock, closed: () => void) {
    this.#job = job;
    this.#door = door;
    this.#child = child;
    this.#clock = clock;
    this.#closed = closed;
    this.#output = child.stdout.getReader();
    this.#complaint = readStart(child.stderr);
    // ffmpeg reads commands from standard input; it gets none.
    void child.stdin.close().catch(() => {});
  }

  async next(signal: AbortSignal): Promise<Uint8Array | null> {
    if (signal.aborted) throw abortError(signal);
    if (this.#isClosed) throw new MillraceError("closed", "the program was ended");
    const { done, value } = await this.#read(signal);
    if (this.#door.failure !== null) throw this.#door.failure;
    if (!done) {
      this.#givenBytes += value.length;
      if (this.#givenBytes <= this.#job.limitBytes) return value;
      throw new MillraceError("bad_media", "the file is damaged: its output would be many times its size");
    }
    const code = await withSignal(this.#child.exited, signal);
    if (code === 0 || this.#givenBytes > 0) return null;
    const [why = ""] = (await this.#complaint).split("\n");
    const reason = why.replaceAll(this.#door.url, "the file");
    throw new MillraceError("bad_media", `${this.#job.program} cannot read the file: ${reason || `code ${code}`}`);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#child.kill("SIGKILL");
    this.#door.close();
    this.#reading?.catch(() => {});
    void this.#output.cancel().catch(() => {});
    this.#closed();
  }

  /** Reads the next output; waits as long as the program waits for the file, but not for a program that hangs. */
  async #read(signal: AbortSignal): Promise<ReadableStreamReadResult<Uint8Array>> {
    const reading = this.#reading ??= this.#output.read();
    for (;;) {
      const served = this.#door.servedBytes;
      const hangs = new MillraceError("timeout", `${this.#job.program} does nothing any more`);
      const late = deadline(this.#clock, PATIENCE_MS, signal, () => hangs);
      try {
        const result = await withSignal(reading, late.signal);
        this.#reading = null;
        return result;
      } catch (error) {
        const isBusy = this.#door.isWaiting || this.#door.servedBytes > served;
        if (error !== hangs || signal.aborted || !isBusy) throw error;
      } finally {
        late.cancel();
      }
    }
  }
}

async function drain(stream: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of stream);
}

/** Reads everything and keeps the beginning. */
async function readStart(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of stream) {
      if (text.length < MAX_COMPLAINT_BYTES) text += decoder.decode(chunk.subarray(0, MAX_COMPLAINT_BYTES));
    }
  } catch {
    // The text read so far is enough.
  }
  return text;
}
