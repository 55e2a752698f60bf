/** What `broadcast` and `relay` share: an engine that has peers and no HTTP, until a signal arrives. */
import path from "node:path";
import type { Config } from "../src/config.ts";
import { createEngine, type Engine, type EngineOptions } from "../src/engine.ts";
import { hasCode } from "../src/errors.ts";
import type { Ports } from "../src/ports.ts";

/** After this long the program goes on with its end whatever still hangs, ms. */
const STOP_DEADLINE_MS = 3000;

/** Runs a command; returns its exit code. What breaks off because it was told to stop is no failure. */
export async function untilStopped(stopped: Promise<void>, run: (signal: AbortSignal) => Promise<void>): Promise<0> {
  const gaveUp = new AbortController();
  void stopped.then(() => gaveUp.abort());
  try {
    await run(gaveUp.signal);
  } catch (error) {
    if (!gaveUp.signal.aborted || !hasCode(error, "aborted")) throw error;
  }
  return 0;
}

/** Runs `body` with an engine of its own, which has `STOP_DEADLINE_MS` to end. */
export async function withEngine(
  ports: Ports,
  options: EngineOptions,
  body: (engine: Engine) => Promise<void>,
): Promise<void> {
  const engine = await createEngine(ports, options);
  try {
    await body(engine);
  } finally {
    await inTime(engine.close());
  }
}

/** Resolves when `ending` does, or `STOP_DEADLINE_MS` from now; rejects as it does. */
export async function inTime(ending: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => timer = setTimeout(resolve, STOP_DEADLINE_MS));
  try {
    await Promise.race([ending, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** What the engine of a command is told that has peers and no clients. */
export function peersOnly(config: Config, stateDir: string): EngineOptions {
  const { dhtBootstrap, ...rest } = config;
  return {
    ...rest,
    ...(dhtBootstrap.length > 0 && { dhtBootstrap }),
    stateDir,
    cacheDir: null,
    cache: "ram",
    databaseUrl: null,
  };
}

/** An absolute path with `/` between its parts. */
export function absolute(given: string): string {
  return path.resolve(given).replaceAll("\\", "/");
}
