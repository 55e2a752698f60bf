/** Engines over HTTP with accounts, and a clock that tests can advance. */
import { scryptSync } from "node:crypto";
import { loadPorts } from "../../platform/detect.ts";
import { Accounts } from "../../src/account/accounts.ts";
import { createStore } from "../../src/database/store.ts";
import { createEngine, type EngineOptions } from "../../src/engine.ts";
import type { Clock, NetworkPort } from "../../src/ports.ts";
import { TOKEN } from "../api/support.ts";
import { byNamedCaller, FROM } from "../support/caller.ts";

/** The machine's clock plus an offset. */
export class ShiftedClock implements Clock {
  readonly #clock: Clock;
  #shiftMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now = () => this.#clock.now() + this.#shiftMs;
  monotonic = () => this.#clock.monotonic() + this.#shiftMs;
  setTimeout = (fn: () => void, delayMs: number) => this.#clock.setTimeout(fn, delayMs);

  /** Does not affect timers that are already running. */
  advance(ms: number): void {
    this.#shiftMs += ms;
  }
}

/** A response of the method API. */
export interface Answer {
  readonly status: number;
  readonly retryAfterS: number | null;
  // deno-lint-ignore no-explicit-any -- the tests inspect it
  readonly result: any;
  readonly error: { message: string; code: number } | null;
}

/** An engine with an HTTP server. */
export interface Served {
  readonly url: string;
  readonly clock: ShiftedClock;
  /** Posts a form to the API with the token; `from` is the address that a trusted proxy forwards for. */
  call(method: string, params?: Record<string, string>, from?: string): Promise<Answer>;
  /** The currently published public keys. */
  jwks(): Promise<{ keys: Record<string, string>[] }>;
}

/** Runs `body` with an engine behind a real HTTP server. */
export async function withServed(
  options: EngineOptions,
  body: (served: Served) => Promise<void>,
  network?: NetworkPort,
): Promise<void> {
  const ports = await loadPorts({ log: { level: "error" } });
  const clock = new ShiftedClock(ports.clock);
  const engine = await createEngine({ ...ports, clock, network: network ?? ports.network }, {
    peerHost: "127.0.0.1",
    peerPort: 0,
    dht: false,
    lsd: false,
    accessToken: TOKEN,
    ...options,
  });
  // Callers from all addresses, for limits per address.
  engine.access.setAllowed("internet", true);
  const server = await ports.http.serve({ host: "127.0.0.1", port: 0 }, byNamedCaller(engine));
  const url = `http://127.0.0.1:${server.address.port}`;
  try {
    await body({
      url,
      clock,
      async call(method, params = {}, from) {
        const response = await fetch(`${url}/server/api`, {
          method: "POST",
          body: new URLSearchParams({ token: TOKEN, method, ...params }),
          headers: from === undefined ? {} : { [FROM]: from },
        });
        const { result, error } = await response.json();
        const retryAfter = response.headers.get("retry-after");
        const retryAfterS = retryAfter === null ? null : Number(retryAfter);
        return { status: response.status, retryAfterS, result, error };
      },
      jwks: async () => await (await fetch(`${url}/.well-known/jwks.json`)).json(),
    });
  } finally {
    await engine.close();
    await server.close(0);
  }
}

/** Accounts in the database of a state directory, as the command line uses them while an engine runs. */
export async function withAccounts<T>(stateDir: string, body: (accounts: Accounts) => Promise<T>): Promise<T> {
  const ports = await loadPorts({ log: { level: "error" } });
  const store = createStore(ports, { kind: "file", path: `${stateDir}/millrace.db` });
  try {
    return await body(new Accounts(store, ports.clock));
  } finally {
    await store.close();
  }
}

/**
 * Adds an account whose password takes a millisecond to check: a record contains its own cost, and most tests are about
 * something else.
 */
export async function addCheaply(stateDir: string, email: string, password: string): Promise<void> {
  const ports = await loadPorts({ log: { level: "error" } });
  const store = createStore(ports, { kind: "file", path: `${stateDir}/millrace.db` });
  const salt = new Uint8Array(16).fill(7);
  const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes)).replace(/=+$/, "");
  const hash = scryptSync(password, salt, 32, { N: 2 ** 8, r: 8, p: 1 });
  const record = `$scrypt$ln=8,r=8,p=1$${base64(salt)}$${base64(hash)}`;
  try {
    const db = await store.open();
    await db.insertInto("accounts").values({ email, password: record, created_at: 1, updated_at: 1 }).execute();
  } finally {
    await store.close();
  }
}
