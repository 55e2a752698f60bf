/** An engine for API tests: calls with any address, on a network of the test's own. */
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import { METHODS } from "../../src/http/api/registry.ts";
import type { NetworkPort, Ports } from "../../src/ports.ts";
import { byNamedCaller, FROM } from "../support/caller.ts";
import { assertDescribed } from "../support/described.ts";

/** The token that the tests' engines have. */
export const TOKEN = "0123456789abcdef".repeat(4);
/** One address of each class, as the network below sees it. */
export const ADDRESSES = { loopback: "127.0.0.1", intranet: "192.168.7.77", internet: "8.8.8.8" } as const;

const network: NetworkPort = {
  interfaces: () => [
    { name: "lo", host: "127.0.0.1", prefixLength: 8, family: 4, loopback: true },
    { name: "eth0", host: "192.168.7.5", prefixLength: 24, family: 4, loopback: false },
  ],
  resolve: (host) => Promise.resolve([host]),
};

/** A call's context besides its parameters. */
export interface CallOptions {
  readonly from?: keyof typeof ADDRESSES;
  readonly headers?: Record<string, string>;
  readonly path?: string;
  readonly init?: RequestInit;
}

/** An answer with its status and headers. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // deno-lint-ignore no-explicit-any -- the tests look into it
  readonly result: any;
  readonly error: { message: string; code: number } | null;
  /** Fields besides these two. */
  readonly notes: Readonly<Record<string, unknown>>;
}

/** The path of `method` in the document: the shared path for methods that are unknown or named elsewhere. */
function pathOf(method: string | undefined): string {
  return METHODS.some(({ name }) => name === method) ? `/server/api/${method}` : "/server/api";
}

async function answerOf(response: Response, path: string): Promise<Answer> {
  const body = await response.json();
  assertDescribed(path, body);
  const { result, error, ...notes } = body;
  return { status: response.status, headers: response.headers, result, error, notes };
}

/** An engine called without a server. */
export interface CalledEngine {
  readonly engine: Engine;
  call(method: string, params?: Record<string, string>, options?: CallOptions): Promise<Answer>;
}

/** Runs `body` with an engine that uses nothing but memory unless `options` say otherwise, on ports that `change` may change. */
export async function withEngine(
  body: (called: CalledEngine) => Promise<void>,
  options: EngineOptions = {},
  change: (ports: Ports) => Ports = (ports) => ports,
) {
  const ports = { ...await loadPorts({ log: { level: "error" } }), network };
  const engine = await createEngine(change(ports), {
    peerHost: "127.0.0.1",
    peerPort: 0,
    dht: false,
    lsd: false,
    playerDiscovery: false,
    accessToken: TOKEN,
    // There is nobody to ask.
    analysisTimeoutMs: 100,
    ...options,
  });
  const call: CalledEngine["call"] = async (method, params = {}, more = {}) => {
    const query = new URLSearchParams(method === "" ? params : { method, ...params });
    const request = new Request(`http://127.0.0.1:6878${more.path ?? "/server/api"}?${query}`, {
      headers: more.headers ?? {},
      ...more.init,
    });
    const response = await engine.fetch(request, { remote: { host: ADDRESSES[more.from ?? "loopback"], port: 1 } });
    return await answerOf(response, more.path === "/search" ? more.path : pathOf(method || params["method"]));
  };
  try {
    await body({ engine, call });
  } finally {
    await engine.close();
  }
}

/** An engine behind a real HTTP server. */
export interface ServedApi {
  readonly engine: Engine;
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** A GET of the API by a caller of this class. */
  call(method: string, params?: Record<string, string>, options?: Pick<CallOptions, "from">): Promise<Answer>;
}

/** As `withEngine`, over HTTP. Callers come from 127.0.0.1, unless the field `FROM` gives them another address. */
export async function withServed(body: (served: ServedApi) => Promise<void>, options: EngineOptions = {}) {
  await withEngine(async ({ engine }) => {
    const { http } = await loadPorts();
    const server = await http.serve({ host: "127.0.0.1", port: 0 }, byNamedCaller(engine));
    try {
      const url = `http://127.0.0.1:${server.address.port}`;
      await body({
        engine,
        url,
        async call(method, params = {}, { from = "loopback" } = {}) {
          const query = new URLSearchParams({ method, ...params });
          const headers = { [FROM]: ADDRESSES[from] };
          const response = await fetch(`${url}/server/api?${query}`, { headers });
          return await answerOf(response, pathOf(method));
        },
      });
    } finally {
      await server.close(0);
    }
  }, options);
}
