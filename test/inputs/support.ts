/** Shared by the tests of sources: real sockets and processes on a clock that runs faster. */
import { loadPorts } from "../../platform/detect.ts";
import type { LiveInput, LiveInputEvent } from "../../src/live/broadcast/input.ts";
import type { Clock, Logger, Ports } from "../../src/ports.ts";
import { clip } from "../support/fixtures.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

/** A clip of a second or two in packets of 188 bytes. */
export const CLIP = clip("ts-188.ts");

/** No wait of a test is longer, ms. */
const WAIT_MS = 20_000;

/** How often a fast clock moves while somebody waits for it, real ms. */
const TICK_MS = 5;
/** Longest step that it takes at once, real ms. */
const MOST_STEP_MS = 20;

/**
 * Real time, `factor` times as fast. It stands still while others have the machine: a moment in which this process does
 * not run would count as that many seconds of silence.
 */
export function fastClock(factor: number): Clock {
  const pending = new Set<object>();
  let ticker: ReturnType<typeof setInterval> | null = null;
  let lastMs = performance.now();
  let nowMs = 0;
  const move = () => {
    const realMs = performance.now();
    nowMs += Math.min(realMs - lastMs, MOST_STEP_MS) * factor;
    lastMs = realMs;
    return nowMs;
  };
  const watch = () => {
    if (pending.size > 0) ticker ??= setInterval(move, TICK_MS);
    else if (ticker !== null) {
      clearInterval(ticker);
      ticker = null;
    }
  };
  return {
    now: () => Date.now(),
    monotonic: move,
    setTimeout(fn, delayMs) {
      const dueMs = move() + delayMs;
      const token = {};
      const end = () => {
        pending.delete(token);
        watch();
      };
      const look = () => {
        const leftMs = dueMs - move();
        if (leftMs > 0) return void (timer = setTimeout(look, leftMs / factor));
        end();
        fn();
      };
      let timer = setTimeout(look, delayMs / factor);
      pending.add(token);
      watch();
      return {
        cancel: () => {
          clearTimeout(timer);
          end();
        },
      };
    },
  };
}

/** Logged events. */
export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Ports of this runtime with a fast clock and a log that is kept. */
export async function sourcePorts(factor = 1): Promise<Ports & { readonly lines: LogLine[] }> {
  const lines: LogLine[] = [];
  const log: Logger = {
    log: (level, message, fields = {}) => void lines.push({ level, message, fields }),
    child: () => log,
  };
  return { ...await loadPorts({ log: { level: "error" } }), clock: fastClock(factor), log, lines };
}

/** Events of a source in order; adjacent data are joined. */
export type Heard = { readonly lost: string } | { readonly data: Uint8Array };

/** Reads `input` to its end or until `enough` accepts the events so far, for `waitMs` at most, then releases it. */
export async function hear(
  input: LiveInput,
  enough: (heard: readonly Heard[], bytes: number) => boolean = () => false,
  waitMs = WAIT_MS,
): Promise<Heard[]> {
  const heard: Heard[] = [];
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const close = () => {
    if (parts.length > 0) heard.push({ data: concatBytes(parts) });
    parts = [];
  };
  const events = input[Symbol.asyncIterator]();
  const timer = setTimeout(() => void events.return?.(), waitMs);
  try {
    for (;;) {
      const next: IteratorResult<LiveInputEvent> = await events.next();
      if (next.done) break;
      if (next.value.kind === "lost") {
        close();
        heard.push({ lost: next.value.reason });
      } else {
        parts.push(next.value.bytes);
        bytes += next.value.bytes.length;
      }
      if (enough([...heard, ...(parts.length > 0 ? [{ data: parts[0]! }] : [])], bytes)) break;
    }
  } finally {
    clearTimeout(timer);
    await events.return?.();
  }
  close();
  return heard;
}

/** All data of `heard` in one. */
export function dataOf(heard: readonly Heard[]): Uint8Array {
  return concatBytes(heard.flatMap((one) => "data" in one ? [one.data] : []));
}

/** How often the source was lost. */
export function losses(heard: readonly Heard[]): string[] {
  return heard.flatMap((one) => "lost" in one ? [one.lost] : []);
}

/** Options for `openSource` that a test needs no part of. */
export const OPTIONS = {
  once: false,
  stdin: (): ReadableStream<Uint8Array> => {
    throw new Error("standard input was opened");
  },
  resolvePath: (path: string) => path,
  signal: new AbortController().signal,
};
