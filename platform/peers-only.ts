/** What `broadcast` and `relay` share: an engine that has peers and no HTTP, until a signal arrives. */
import path from "node:path";
import type { Config } from "../src/config.ts";
import { createEngine, type Engine, type EngineOptions } from "../src/engine.ts";
import { hasCode } from "../src/errors.ts";
import type { Ports } from "../src/ports.ts";

/** After this long the program ends even if something still hangs, ms. */
const STOP_DEADLINE_MS = 3000;

/** Runs a command; returns its exit code. A command aborted by the stop signal has not failed. */
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

/** Runs `body` with an engine of its own, then closes the engine, waiting at most `STOP_DEADLINE_MS`. */
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

/** Resolves when `ending` does, but at the latest after `STOP_DEADLINE_MS`; rejects when `ending` does. */
export async function inTime(ending: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => timer = setTimeout(resolve, STOP_DEADLINE_MS));
  try {
    await Promise.race([ending, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** Engine options for a command that has peers but no HTTP clients. */
export function peersOnly(config: Config, stateDir: string): EngineOptions {
  const { dhtBootstrap, peerHost, ...rest } = config;
  return {
    ...rest,
    ...(peerHost !== null && { peerHost }),
    ...(dhtBootstrap.length > 0 && { dhtBootstrap }),
    stateDir,
    // They are for HTTP clients.
    fronts: [],
    strmDir: null,
    cacheDir: null,
    cache: "ram",
    databaseUrl: null,
  };
}

/** An absolute path with `/` between its parts. */
export function absolute(given: string): string {
  return path.resolve(given).replaceAll("\\", "/");
}
