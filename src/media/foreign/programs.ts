/** Runs ffmpeg and ffprobe on untrusted files: bounded, with deadlines, and without access to anything but that file. */
import { OWN, type ShareHolder, Shares, type Shortage } from "../../bytes/shares.ts";
import { deadline, withSignal } from "../../bytes/deadline.ts";
import { faultFields, guardedClock } from "../../bytes/guarded-clock.ts";
import type { ByteSource } from "../../bytes/source.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { ChildProcess, Clock, HttpPort, Logger, ProcessPort, Timer } from "../../ports.ts";
import { FfmpegLog } from "../transcode/ffmpeg-log.ts";
import { isThereDespite } from "../transcode/program-there.ts";
import { type Door, DoorKeeper } from "./file-door.ts";
import type { ForeignJob, ForeignReader, ForeignRun } from "../model/foreign-reader.ts";

/**
 * Most programs at once, and shares of them: each takes 20 to 60 MB. A player has one, and for a moment two when it
 * seeks or fetches segments.
 */
export const PROGRAM_LIMITS = { total: 12, reserved: 4, page: 2, other: 4 };
/**
 * A program from which nobody reads for this long is set aside, ms. Players of sound at 64 kb/s take a chunk each 16 s;
 * starting again costs a second of a processor.
 */
export const IDLE_MS = 30_000;
/** When places are short, a program from which nobody has read for this long is set aside at once, ms. */
export const EVICT_IDLE_MS = 1000;
/** How long a new reader waits for a place, ms, and how often it looks for a program that has become idle. */
export const PLACE_WAIT_MS = 5000;
const LOOK_MS = 500;
/** A program that neither reads nor writes for this long hangs, ms. */
export const PATIENCE_MS = 30_000;
/** Deadline of `-version`, ms. */
const VERSION_MS = 5000;
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
  readonly #log: Logger | null;
  readonly #doors: DoorKeeper;
  readonly #places = new Shares(PROGRAM_LIMITS);
  readonly #running = new Map<Program, ShareHolder>();
  /** Those that wait for a place. */
  readonly #waiting = new Set<() => void>();
  #found = false;

  /** `log`: where faults of ours in timers of programs are reported; each ends its program. */
  constructor(processes: ProcessPort, http: HttpPort, clock: Clock, log: Logger | null = null) {
    this.#processes = processes;
    this.#clock = clock;
    this.#log = log;
    this.#doors = new DoorKeeper(http);
  }

  async isAvailable(signal: AbortSignal): Promise<boolean> {
    let isSure = true;
    for (const program of this.#found ? [] : ["ffmpeg", "ffprobe"]) {
      const late = deadline(this.#clock, VERSION_MS, signal);
      let child: ChildProcess | null = null;
      try {
        child = await this.#processes.spawn(program, ["-version"]);
        void child.stdin.close().catch(() => {});
        const ended = Promise.all([drain(child.stdout), drain(child.stderr), child.exited]);
        await withSignal(ended, late.signal);
      } catch (error) {
        if (signal.aborted) throw abortError(signal);
        if (!isThereDespite(error)) return false;
        isSure = false;
      } finally {
        child?.kill("SIGKILL");
        late.cancel();
      }
    }
    this.#found = isSure;
    return true;
  }

  async open(job: ForeignJob, source: ByteSource, signal: AbortSignal): Promise<ForeignRun> {
    const holder = source.holder ?? OWN;
    await this.#takePlace(holder, job.isContinued ?? false, signal);
    let door: Door | null = null;
    let child: ChildProcess | null = null;
    try {
      door = await this.#doors.open(source);
      child = await this.#processes.spawn(job.program, job.arguments(door.url), { env: ENVIRONMENT });
      if (signal.aborted) throw abortError(signal);
      const program: Program = new Program(job, door, child, this.#clock, {
        closed: () => {
          this.#running.delete(program);
          this.#giveBack(holder);
        },
        failed: (error) => this.#log?.log("error", "a fault of the engine ended a program", faultFields(error)),
      });
      this.#running.set(program, holder);
      return program;
    } catch (error) {
      this.#giveBack(holder);
      child?.kill("SIGKILL");
      door?.close();
      throw error;
    }
  }

  async #takePlace(holder: ShareHolder, isPatient: boolean, signal: AbortSignal): Promise<void> {
    let shortage: Shortage | null = null;
    const late = isPatient
      ? null
      : deadline(this.#clock, PLACE_WAIT_MS, signal, () =>
        new MillraceError("too_busy", shortageText(holder, shortage)));
    try {
      for (;;) {
        if (signal.aborted) throw abortError(signal);
        shortage = this.#places.shortage(holder);
        if (shortage === null) return this.#places.take(holder);
        const idle = this.#longestIdle(holder, shortage);
        if (idle === null) await this.#change(late?.signal ?? signal);
        else idle.setAside();
      }
    } finally {
      late?.cancel();
    }
  }

  #giveBack(holder: ShareHolder): void {
    this.#places.giveBack(holder);
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when a place was given back, or a program may have become idle. */
  async #change(signal: AbortSignal): Promise<void> {
    let wake = () => {};
    const changed = new Promise<void>((resolve) => this.#waiting.add(wake = resolve));
    const timer = this.#clock.setTimeout(wake, LOOK_MS);
    try {
      await withSignal(changed, signal);
    } finally {
      timer.cancel();
      this.#waiting.delete(wake);
    }
  }

  /** The program that makes room for one of `holder`: its reader, which pauses, will start another. */
  #longestIdle(holder: ShareHolder, shortage: Shortage): Program | null {
    let found: Program | null = null;
    for (const [program, its] of this.#running) {
      const mayGo = holder.kind === "own" || its.kind === holder.kind && its.name === holder.name ||
        shortage === "total" && its.kind !== "own";
      if (mayGo && program.idleMs >= Math.max(EVICT_IDLE_MS, found?.idleMs ?? 0)) found = program;
    }
    return found;
  }
}

function shortageText({ kind }: ShareHolder, shortage: Shortage | null): string {
  const whose = shortage !== "share"
    ? `${PROGRAM_LIMITS.total} files that only ffmpeg reads are being played`
    : kind === "page"
    ? `pages of other sites play ${PROGRAM_LIMITS.page} files that only ffmpeg reads already`
    : `this address plays ${PROGRAM_LIMITS.other} files that only ffmpeg reads already`;
  return `${whose}: stop one, or try again later`;
}

/** What a program reports. */
interface ProgramOwner {
  /** Called when the program has ended, so that its place is free. */
  closed(): void;
  /** A fault of ours in one of its timers ended it. */
  failed(error: unknown): void;
}

/** A running program. */
class Program implements ForeignRun {
  readonly #job: ForeignJob;
  readonly #door: Door;
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  readonly #owner: ProgramOwner;
  readonly #output: ReadableStreamDefaultReader<Uint8Array>;
  readonly #log = new FfmpegLog();
  /** Its error output was read to the end. */
  readonly #logged: Promise<unknown>;
  #reading: Promise<ReadableStreamReadResult<Uint8Array>> | null = null;
  #givenBytes = 0;
  #isClosed = false;
  #isSetAside = false;
  #fault: MillraceError | null = null;
  /** Since when nobody reads from it, monotonic ms; null: somebody does. */
  #idleSinceMs: number | null = null;
  #idle: Timer | null = null;

  constructor(job: ForeignJob, door: Door, child: ChildProcess, clock: Clock, owner: ProgramOwner) {
    this.#job = job;
    this.#door = door;
    this.#child = child;
    this.#clock = guardedClock(clock, (error) => this.#fail(error));
    this.#owner = owner;
    this.#output = child.stdout.getReader();
    // What was read so far is enough.
    this.#logged = this.#log.read(child.stderr).catch(() => {});
    // ffmpeg reads commands from standard input; it gets none.
    void child.stdin.close().catch(() => {});
    this.#rest();
  }

  get isSetAside(): boolean {
    return this.#isSetAside;
  }

  get silentSamples(): number {
    return this.#log.silentSamples;
  }

  /** How long nobody has read from it, ms. */
  get idleMs(): number {
    return this.#idleSinceMs === null ? 0 : this.#clock.monotonic() - this.#idleSinceMs;
  }

  /** Ends it, because nobody reads from it. */
  setAside(): void {
    if (this.#isClosed) return;
    this.#isSetAside = true;
    this.close();
  }

  /** From now on nobody reads from it. */
  #rest(): void {
    if (this.#isClosed) return;
    this.#idleSinceMs = this.#clock.monotonic();
    this.#idle = this.#clock.setTimeout(() => this.setAside(), IDLE_MS);
  }

  async next(signal: AbortSignal): Promise<Uint8Array | null> {
    this.#idle?.cancel();
    this.#idleSinceMs = null;
    try {
      return await this.#next(signal);
    } finally {
      this.#rest();
    }
  }

  async #next(signal: AbortSignal): Promise<Uint8Array | null> {
    if (signal.aborted) throw abortError(signal);
    if (this.#fault !== null) throw this.#fault;
    if (this.#isClosed) throw new MillraceError("closed", "the program was ended");
    const { done, value } = await this.#read(signal);
    if (this.#fault !== null) throw this.#fault;
    if (this.#door.failure !== null) throw this.#door.failure;
    if (!done) {
      this.#givenBytes += value.length;
      if (this.#givenBytes <= this.#job.limitBytes) return value;
      throw new MillraceError("bad_media", "the file is damaged: its output would be many times its size");
    }
    const code = await withSignal(this.#child.exited, signal);
    if (code === 0 || this.#givenBytes > 0) return null;
    await this.#logged;
    const reason = this.#log.firstError.replaceAll(this.#door.url, "the file");
    throw new MillraceError("bad_media", `${this.#job.program} cannot read the file: ${reason || `code ${code}`}`);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#idle?.cancel();
    try {
      this.#child.kill("SIGKILL");
      this.#door.close();
      this.#reading?.catch(() => {});
      void this.#output.cancel().catch(() => {});
    } finally {
      // Its place is free whatever fails.
      this.#owner.closed();
    }
  }

  #fail(cause: unknown): void {
    this.#fault = new MillraceError("internal", "a fault of the engine ended the program", { cause });
    this.#owner.failed(cause);
    try {
      this.close();
    } catch (error) {
      this.#owner.failed(error);
    }
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
