/** HTTP requests to a chosen address, on node:http and node:https: all three runtimes honour their `lookup` option. */
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { HttpClientAnswer, HttpClientPort, HttpClientRequest } from "../../src/ports.ts";
import { headersOf } from "./http-fields.ts";
import { KeptSockets } from "./kept-sockets.ts";
import { openRaw } from "./lenient-http.ts";
import { webReadable } from "./node-streams.ts";
import { brokenError, connectError } from "./os-error.ts";

/** A kept connection that nobody needed for this long is closed, ms: most servers close theirs after 5 to 75 s. */
const IDLE_MS = 10_000;

/** Idle connections kept, to one address and in all: as many requests as web seeds have at one server, and at four. */
const MAX_IDLE_PER_HOST = 4;
const MAX_IDLE = 16;

/** Settings of `createHttpClient`. */
export interface HttpClientOptions {
  /** Certificates to trust instead of the runtime's, PEM. */
  readonly ca?: string;
  /** After which idle connections are closed, ms. Default 10 s. */
  readonly idleMs?: number;
  /** Called with the bytes of each part of a response that arrived. */
  readonly received?: (bytes: number) => void;
}

/** Where connections are kept. */
interface Agents {
  readonly plain: http.Agent;
  readonly tls: http.Agent;
  /** Through proxies. */
  readonly proxied: KeptSockets;
  /** As in `HttpClientOptions`. */
  readonly ca: string | undefined;
}

/** What Node documents for derived agents, and its types leave out. */
interface KeepingAgent extends http.Agent {
  keepSocketAlive(socket: net.Socket): boolean;
}

/** Keeps connections by address as well: another address of the same name may be inside a private network. */
function keptByAddress(agent: http.Agent): http.Agent {
  const keeping = agent as KeepingAgent;
  const getName = agent.getName.bind(agent);
  const keepAlive = keeping.keepSocketAlive.bind(agent);
  agent.getName = (options) => `${getName(options)}:${(options as { address?: string } | undefined)?.address}`;
  keeping.keepSocketAlive = (socket) => {
    const idle = Object.values(agent.freeSockets).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0);
    return idle < MAX_IDLE && keepAlive(socket);
  };
  return agent;
}

/** See `HttpClientPort`. */
export function createHttpClient({ ca, idleMs = IDLE_MS, received }: HttpClientOptions = {}): HttpClientPort {
  const kept = { keepAlive: true, maxFreeSockets: MAX_IDLE_PER_HOST, timeout: idleMs };
  const agents = {
    plain: keptByAddress(new http.Agent(kept)),
    tls: keptByAddress(new https.Agent(ca === undefined ? kept : { ...kept, ca })),
    proxied: new KeptSockets({ idleMs, maxPerServer: MAX_IDLE_PER_HOST, max: MAX_IDLE }),
    ca,
  };
  return { open: (request) => open(request, agents, received) };
}

function open(
  request: HttpClientRequest,
  agents: Agents,
  received: ((bytes: number) => void) | undefined,
): Promise<HttpClientAnswer> {
  const { url, address, method, headers, signal, localAddress } = request;
  const isTls = url.protocol === "https:";
  const target = { host: address, port: Number(url.port || (isTls ? 443 : 80)) };
  const family = net.isIP(address);
  if (signal.aborted) return Promise.reject(abortError(signal));
  if (request.proxy !== undefined) return openRaw(request, { ca: agents.ca, received, kept: agents.proxied });
  // A name would be resolved again, possibly to another address than the one that was checked.
  if (family === 0) return Promise.reject(connectError(new Error("not a literal address"), target));
  if (request.isLenient === true) return openRaw(request, { ca: agents.ca, received });
  const lookup: net.LookupFunction = (_name, { all }, found) =>
    all ? found(null, [{ address, family }]) : found(null, address, family);
  return new Promise((resolve, reject) => {
    const fields = {
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: target.port,
      path: url.pathname + url.search,
      method,
      headers: { host: url.host, ...Object.fromEntries(headers) },
      lookup,
      address,
      ...(localAddress !== undefined && { localAddress }),
      agent: isTls ? agents.tls : agents.plain,
    };
    const sent = isTls ? https.request(fields) : http.request(fields);
    const abort = () => sent.destroy(abortError(signal));
    const fail = (error: Error) => {
      signal.removeEventListener("abort", abort);
      // The server closed the kept connection before it read the request. The agent has dropped it by now.
      if (sent.reusedSocket && !signal.aborted) return resolve(open(request, agents, received));
      reject(signal.aborted ? abortError(signal) : connectError(error, target));
    };
    signal.addEventListener("abort", abort, { once: true });
    sent.once("error", fail);
    sent.once("response", (message) => {
      signal.removeEventListener("abort", abort);
      const stop = () => message.destroy(abortError(signal));
      // The response was on its way when the signal fired, which does not fire again.
      if (signal.aborted) {
        message.once("error", () => {});
        stop();
        return reject(abortError(signal));
      }
      signal.addEventListener("abort", stop, { once: true });
      message.once("close", () => signal.removeEventListener("abort", stop));
      sent.off("error", fail);
      // From here on the response reports errors.
      sent.on("error", () => {});
      const body = webReadable(message, (error) => {
        if (signal.aborted) return abortError(signal);
        return error instanceof MillraceError ? error : brokenError(error, target);
      });
      // After the stream has paused it: the first listener would make it flow.
      if (received !== undefined) message.on("data", (chunk: Uint8Array) => received(chunk.length));
      resolve({ status: message.statusCode ?? 0, headers: headersOf(message.rawHeaders), body });
    });
    sent.end();
  });
}
