/**
 * Slow motion: lets programs run as if the machine had `factor` times the cores. Their clock runs that much slower, so
 * per second of it they do what they always do, and the machine has `factor` seconds for that. Whatever the machine
 * does takes 1/`factor` of its usual time by this clock: delays leave most of the processing out, CPU does not.
 *
 * What goes by the machine's time all the same: the turns that long work takes (`src/bytes/turn.ts`), the allowance of
 * encrypted handshakes (`src/wire/mse-key-exchange.ts`), timers of the kernel's TCP and of the garbage collector.
 */
import process from "node:process";
import type { Clock, Ports } from "../../src/ports.ts";

/** A clock that runs `factor` times slower than `machine`; at `originMs`, Unix ms, both show the same time. */
export function slowClock(machine: Clock, factor: number, originMs: number): Clock {
  if (factor === 1) return machine;
  return {
    now: () => Math.floor(originMs + (machine.now() - originMs) / factor),
    monotonic: () => machine.monotonic() / factor,
    setTimeout: (fn, delayMs) => machine.setTimeout(fn, delayMs * factor),
  };
}

/** The ports with such a clock. */
export function slowPorts(ports: Ports, factor: number, originMs: number): Ports {
  return { ...ports, clock: slowClock(ports.clock, factor, originMs) };
}

/** Calls `fn` once per second of the clock. */
export function everySecond(clock: Clock, fn: () => void): void {
  clock.setTimeout(() => {
    everySecond(clock, fn);
    fn();
  }, 1000);
}

/** Measures the CPU of this process per second of a clock. */
export class CpuMeter {
  readonly #clock: Clock;
  #lastMs: number;
  #lastUs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastMs = clock.monotonic();
    this.#lastUs = usedUs();
  }

  /** CPU since the last call, % of a core. */
  take(): number {
    const [nowMs, nowUs] = [this.#clock.monotonic(), usedUs()];
    const share = (nowUs - this.#lastUs) / (nowMs - this.#lastMs) / 10;
    [this.#lastMs, this.#lastUs] = [nowMs, nowUs];
    return share;
  }
}

function usedUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
