/** The usual encoder: ffmpeg on the PATH, one process for each piece of audio. */
import { deadline, withSignal } from "../../bytes/deadline.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { ChildProcess, Clock, ProcessPort } from "../../ports.ts";
import { isThereDespite } from "./program-there.ts";
import { FfmpegLog, LOG_ARGUMENTS } from "./ffmpeg-log.ts";
import { type AudioEncoder, type EncodeJob, MADE_RATE } from "../model/audio-target.ts";

/** Most processes at once: each keeps one core busy for a tenth of a second per two seconds of sound. */
export const MAX_PROCESSES = 2;
/** Deadline of a process, ms: a piece takes far less, so a process that runs longer hangs. */
export const ENCODE_TIMEOUT_MS = 30_000;
/** Deadline of `ffmpeg -version`, ms. */
const PROBE_TIMEOUT_MS = 5000;

/** How much earlier AC-3 output begins: the codec delays sound by 256 samples, so its second frame of 1536 starts where the job says. */
const AC3_LEAD_SAMPLES = 1536 - 256;

/** Arguments for one piece: gaps of 20 ms or more are filled with silence, and the output begins at the job's first sample. */
function encodeArguments({ container, target, firstSample, channels, bitsPerSecond }: EncodeJob): string[] {
  const first = firstSample - (target === "ac3" ? AC3_LEAD_SAMPLES : 0);
  return [
    ...["-hide_banner", ...LOG_ARGUMENTS, "-nostdin", "-threads", "1"],
    // The input must not be able to make ffmpeg open anything else.
    ...["-protocol_whitelist", "pipe", "-f", container, "-copyts", "-i", "pipe:0", "-map", "0:a:0"],
    // Two steps: a single aresample that also changes the rate reads first_pts at the other rate.
    ...["-af", `aresample=${MADE_RATE},aresample=${MADE_RATE}:async=1:min_hard_comp=0.02:first_pts=${first}`],
    ...["-ac", String(channels)],
    ...["-c:a", target, "-b:a", String(bitsPerSecond), "-threads", "1", "-flags", "+bitexact"],
    ...["-f", target === "ac3" ? "ac3" : "adts", "pipe:1"],
  ];
}

/** Runs ffmpeg. One per engine: it bounds the processes of all streams together. */
export class FfmpegEncoder implements AudioEncoder {
  readonly #processes: ProcessPort;
  readonly #clock: Clock;
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  #found = false;

  constructor(processes: ProcessPort, clock: Clock) {
    this.#processes = processes;
    this.#clock = clock;
  }

  async isAvailable(signal: AbortSignal): Promise<boolean> {
    if (this.#found) return true;
    try {
      await this.#run(["-hide_banner", "-version"], new Uint8Array(0), 1 << 20, PROBE_TIMEOUT_MS, signal);
      this.#found = true;
      return true;
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      return isThereDespite(error);
    }
  }

  async encode(job: EncodeJob, signal: AbortSignal): Promise<Uint8Array> {
    const log = new FfmpegLog();
    const args = encodeArguments(job);
    const output = await this.#run(args, job.input, job.maxOutputBytes, ENCODE_TIMEOUT_MS, signal, log);
    if (log.silentSamples > 0) job.onSilence?.(log.silentSamples);
    return output;
  }

  async #run(
    args: readonly string[],
    input: Uint8Array,
    maxOutputBytes: number,
    timeoutMs: number,
    signal: AbortSignal,
    log = new FfmpegLog(),
  ): Promise<Uint8Array> {
    await this.#enter(signal);
    const late = deadline(
      this.#clock,
      timeoutMs,
      signal,
      () => new MillraceError("timeout", "ffmpeg did not end in time"),
    );
    let child: ChildProcess | null = null;
    let isOver = false;
    const end = (): void => child?.kill("SIGKILL");
    try {
      const spawning = this.#processes.spawn("ffmpeg", args);
      // End a process that starts after nobody waits for it any more.
      spawning.then((started) => {
        if (isOver) started.kill("SIGKILL");
        else child = started;
      }, () => {});
      const started = await withSignal(spawning, late.signal);
      late.signal.addEventListener("abort", end, { once: true });
      const work = Promise.all([
        readAtMost(started.stdout, maxOutputBytes),
        log.read(started.stderr),
        feed(started.stdin, input),
        started.exited,
      ]);
      const [output, , , code] = await withSignal(work, late.signal);
      if (code !== 0 && output.length === 0) {
        throw new MillraceError("bad_media", `ffmpeg could not make AAC: ${log.firstError}`, { detail: { code } });
      }
      return output;
    } finally {
      isOver = true;
      late.signal.removeEventListener("abort", end);
      end();
      late.cancel();
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async #enter(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortError(signal);
    while (this.#running >= MAX_PROCESSES) {
      let wake = () => {};
      const turn = new Promise<void>((resolve) => wake = resolve);
      this.#waiting.push(wake);
      try {
        await withSignal(turn, signal);
      } catch (error) {
        const place = this.#waiting.indexOf(wake);
        // Its turn had already come: pass it on to the next one.
        if (place < 0) this.#waiting.shift()?.();
        else this.#waiting.splice(place, 1);
        throw error;
      }
    }
    this.#running++;
  }
}

async function feed(stdin: WritableStream<Uint8Array>, input: Uint8Array): Promise<void> {
  try {
    const writer = stdin.getWriter();
    if (input.length > 0) await writer.write(input);
    await writer.close();
  } catch {
    // ffmpeg stopped reading; its exit code and error output say why.
  }
}

async function readAtMost(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    size += next.value.length;
    if (size > maxBytes) throw new MillraceError("too_large", "ffmpeg wrote more sound than the job can have");
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
