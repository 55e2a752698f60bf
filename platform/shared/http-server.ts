/**
 * HTTP server on node:http for all runtimes: Request in, Response out, with backpressure and cancel. Bun.serve drops the
 * Content-Length of a streamed body. Deno.serve has no deadlines and no limit on connections, and is no faster (200
 * clients: 1.6 GB/s against 1.7 here, with a third more memory).
 */
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { HttpPort, HttpServer, SocketAddress } from "../../src/ports.ts";
import { MillraceError } from "../../src/errors.ts";
import { machineKey } from "../../src/bytes/machine-key.ts";
import { guarded } from "../../src/bytes/guarded-clock.ts";
import { noteTurn } from "../../src/bytes/turn.ts";
import { FREED, lendChunks, lenderOf } from "../../src/bytes/lent-chunks.ts";
import { descriptorLimit } from "./descriptors.ts";
import { connectionLimit, type EndedSockets, HttpConnections } from "./http-connections.ts";
import type { watchListener } from "./listener-watch.ts";
import { webReadable } from "./node-streams.ts";
import { bindError, formatAddress } from "./os-error.ts";
import { RequestTurns } from "./request-turns.ts";

/** Deadlines and sizes of a request. A response may take as long as a film. */
export const HTTP_LIMITS = {
  /** A client must send its whole head in this time, ms: even the slowest network carries it in one second. */
  headersTimeoutMs: 10_000,
  /** A client must send its whole request in this time, ms: a long playlist over a slow network. */
  requestTimeoutMs: 300_000,
  /** A connection that is kept for the next request is closed after this, ms: players fetch a segment every 4 to 10 s. */
  keepAliveTimeoutMs: 20_000,
  /** Longest head, bytes: a magnet of 16,384 characters with its escapes fits, and 1024 heads together take 32 MiB. */
  maxHeaderBytes: 32 * 1024,
  /** How often the deadlines are checked, ms. */
  deadlineCheckMs: 1000,
  /**
   * A client that closed its sending side still gets its response (`nc -N` and `socat` do so right after the request). One that
   * left looks the same until something is sent to it; so it counts as gone when nothing was sent for this long, ms.
   */
  quietMs: 2000,
};
/** How often clients that left are looked for, ms. */
const LEFT_CHECK_MS = 500;
/**
 * A client whose request body is not wanted has this long to read the response, ms. Closing at once, with unread bytes of
 * the body, could destroy the response before the client sees it (RFC 9112 section 9.6).
 */
const LINGER_MS = 3000;
/**
 * An unwanted body with at most this Content-Length is read all the same, bytes, so that the connection can be kept.
 * Reading longer ones would be unlimited work: 300 clients that send at full speed hold up everybody else for seconds.
 */
const DRAIN_BYTES = 64 * 1024;
/**
 * A request body of at least `TINY_CHUNKS` chunks that average less than `TINY_CHUNK_BYTES` is given up: each chunk costs as
 * much as a full one, and no client sends such a body by accident.
 */
const TINY_CHUNKS = 2000;
const TINY_CHUNK_BYTES = 16;
/**
 * A response whose bytes are at hand may fill a fast client's socket without ever waiting. So it yields to the event loop
 * after this many bytes, or after each chunk when several responses are being sent: for new connections, for peers, and for
 * clients that would otherwise drift apart until no two of them read the same bytes.
 */
const TURN_BYTES = 1024 * 1024;
/**
 * Whether sockets had their turn by then. Deno checks them only after some sixty turns: measured, a socket waited 75 ms beside
 * turns of 1.5 ms, on Node and Bun 1 ms. Where it is so, what makes the bytes need not wait 1 to 2 ms for a timer each 10 ms:
 * a tenth of the rate of one client.
 */
const SOCKETS_CHECKED = !("Deno" in globalThis);
/**
 * Connections that the system holds until we accept them; it may allow fewer (4096 on Linux by default). It silently drops
 * those that do not fit, and the client tries again after a second: 511, the usual number, is too few for a flood. Bun always
 * uses 512.
 */
const LISTEN_BACKLOG = 4096;
/** How often idle connections are closed while the server closes, ms. */
const IDLE_CHECK_MS = 50;

/** What differs between runtimes, and what tests replace. */
export interface HttpPortParts {
  /** Reopens the listener on runtimes that may stop accepting; default: none. */
  readonly watch?: typeof watchListener;
  readonly limits?: typeof HTTP_LIMITS;
  readonly connections?: (share: number) => HttpConnections;
  /** For runtimes whose sockets do not end when the client closes its side. Null: nothing tells, and such clients are cut off. */
  readonly ended?: EndedSockets | null;
  /** Takes a fault of ours in a check of connections or of the listener; the next check comes in time. */
  readonly failed?: (error: unknown) => void;
}

/** HTTP on node:http. */
export function createHttpPort(
  {
    watch,
    limits = HTTP_LIMITS,
    connections = (share) => new HttpConnections(Math.ceil(connectionLimit(descriptorLimit()) * share)),
    ended = readToTheEnd,
    failed = () => {},
  }: HttpPortParts = {},
): HttpPort {
  return {
    async serve(at, handler, { share = 1 } = {}): Promise<HttpServer> {
      const open = connections(share);
      const servers = new Set<http.Server>();
      const listen = async (where: SocketAddress) => {
        const server = createServer(limits, open, () => address, handler);
        // Not in the types of all runtimes.
        Object.assign(server, { httpAllowHalfOpen: ended !== null });
        const address = await listening(server, where);
        servers.add(server);
        server.once("close", () => servers.delete(server));
        return address;
      };
      const address = await listen(at);
      let closing: Promise<void> | null = null;
      const reopen = () => {
        // Old servers end with their last response. They no longer enforce deadlines, so idle connections are dropped here.
        for (const server of servers) server.close();
        open.destroyIdle();
        // This fails while no descriptor is free; the watch then calls again.
        listen(address).then(() => void (closing && closeAll(servers, open, 0, failed)), () => {});
      };
      const unwatch = watch?.(address, () => open.accepted, reopen, failed);
      const look = guarded(() => ended === null ? null : open.destroyLeft(limits.quietMs, ended), failed);
      const looking = setInterval(look, LEFT_CHECK_MS);
      looking.unref();
      return {
        address,
        close: (graceMs) => {
          unwatch?.();
          return closing ??= closeAll(servers, open, graceMs, failed).finally(() => clearInterval(looking));
        },
      };
    },
  };
}

/** Sockets that have delivered all that their clients sent. */
function readToTheEnd(sockets: readonly Socket[]): Promise<readonly Socket[]> {
  return Promise.resolve(sockets.filter((socket) => socket.readableEnded));
}

function createServer(
  limits: typeof HTTP_LIMITS,
  open: HttpConnections,
  local: () => SocketAddress,
  handler: Parameters<HttpPort["serve"]>[1],
): http.Server {
  const turns = new RequestTurns();
  const server = http.createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    connectionsCheckingInterval: limits.deadlineCheckMs,
    noDelay: true,
  }, (incoming, outgoing) => {
    const { socket } = incoming;
    outgoing.once("close", () => open.finish(socket));
    if (!open.begin(socket)) return void socket.destroy();
    const sent = (isTaken: boolean) => open.sent(socket, isTaken);
    turns.enter(machineKey(socket.remoteAddress ?? ""), () => {
      if (!outgoing.destroyed) answer(incoming, outgoing, local(), handler, sent).catch(() => outgoing.destroy());
    });
  });
  return server.on("connection", (socket) => open.admit(socket));
}

function listening(server: http.Server, at: SocketAddress): Promise<SocketAddress> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(bindError(error, at, "HTTP")));
    server.listen({ host: at.host, port: at.port, backlog: LISTEN_BACKLOG }, () => {
      server.removeAllListeners("error");
      server.on("error", () => {});
      const { address, port } = server.address() as AddressInfo;
      resolve({ host: address, port });
    });
  });
}

function closeAll(
  servers: ReadonlySet<http.Server>,
  connections: HttpConnections,
  graceMs: number,
  failed: (error: unknown) => void,
): Promise<void> {
  return new Promise((resolve) => {
    // A kept-alive connection that becomes idle after its last response would keep the server open.
    const closeIdle = guarded(() => servers.forEach((server) => server.closeIdleConnections()), failed);
    const idle = setInterval(closeIdle, IDLE_CHECK_MS);
    const end = guarded(() => {
      connections.destroyAll();
      servers.forEach((server) => server.closeAllConnections());
    }, failed);
    const timer = setTimeout(end, graceMs);
    const ends = [...servers].map((server) => new Promise<void>((end) => server.close(() => end())));
    closeIdle();
    void Promise.all(ends).then(() => {
      clearInterval(idle);
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Is called when part of the response was sent: whether the system has taken it, or it waits for the client. */
type Sent = (isTaken: boolean) => void;

async function answer(
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
  local: SocketAddress,
  handler: Parameters<HttpPort["serve"]>[1],
  sent: Sent,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  let request: Request;
  try {
    request = toRequest(incoming, local, gone.signal);
  } catch {
    outgoing.writeHead(400, { "content-type": "text/plain" }).end("bad request");
    return;
  }
  const { remoteAddress, remotePort } = incoming.socket;
  let response: Response;
  try {
    response = await handler(request, { remote: { host: remoteAddress ?? "", port: remotePort ?? 0 } });
  } catch {
    response = new Response("internal error", { status: 500 });
  }
  await send(response, incoming, outgoing, sent);
}

function toRequest(incoming: http.IncomingMessage, local: SocketAddress, signal: AbortSignal): Request {
  const method = incoming.method ?? "GET";
  const target = incoming.url ?? "/";
  // HTTP/1.0 clients may send no Host; proxies' clients send the whole URL (RFC 9112, 3.2.2).
  const origin = `http://${incoming.headers.host ?? formatAddress(local)}`;
  const url = new URL(target.startsWith("/") ? origin + target : target);
  const headers = new Headers();
  const raw = incoming.rawHeaders;
  for (let i = 0; i + 1 < raw.length; i += 2) headers.append(raw[i]!, raw[i + 1]!);
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal });
  const init = { method, headers, signal, body: bodyOf(incoming), duplex: "half" };
  return new Request(url, init as RequestInit);
}

/** The request's body. Cancelling it leaves the connection open, as the response is still to be sent. */
function bodyOf(incoming: http.IncomingMessage): ReadableStream<Uint8Array> {
  refuseTinyChunks(incoming);
  const gone = (cause: Error) =>
    new MillraceError("aborted", "the client left in the middle of its request", { cause });
  // Most bodies of a flood are refused unread: what had been read ahead of them would stay until their connections close.
  const body = webReadable(incoming, gone, () => incoming.pause(), 0);
  lendChunks(body, FREED);
  return body;
}

/**
 * Counts chunks as the parser hands them over, before they are buffered: it reads 64 KiB ahead, which may be 65,536 chunks of
 * a byte, each an object of 250 bytes.
 */
function refuseTinyChunks(incoming: http.IncomingMessage): void {
  const push = incoming.push.bind(incoming);
  let chunks = 0;
  let bytes = 0;
  incoming.push = (chunk: Uint8Array | null, encoding) => {
    bytes += chunk?.length ?? 0;
    if (++chunks < TINY_CHUNKS || bytes >= chunks * TINY_CHUNK_BYTES) return push(chunk, encoding);
    incoming.socket.destroy();
    return false;
  };
}

/** Drops the rest of an unread body, and the connection too if the body does not end soon. */
function dropBody(incoming: http.IncomingMessage): void {
  const { socket } = incoming;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  const done = () => clearTimeout(timer);
  socket.once("close", done);
  // By default Node would now read the whole body.
  incoming.pause();
  if (!(Number(incoming.headers["content-length"]) <= DRAIN_BYTES)) return;
  incoming.once("end", done);
  incoming.resume();
}

async function send(
  response: Response,
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
  sent: Sent,
): Promise<void> {
  const { body } = response;
  if (outgoing.destroyed) {
    await body?.cancel();
    return;
  }
  outgoing.once("finish", () => {
    if (!incoming.complete) dropBody(incoming);
  });
  const headers: string[] = [];
  for (const [name, value] of response.headers) headers.push(name, value);
  outgoing.writeHead(response.status, headers);
  if (incoming.method === "HEAD" || body === null) {
    await body?.cancel();
    sent(false);
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  sent(true);
  await pump(body, outgoing, sent);
}

/** Number of bodies being copied. */
let pumping = 0;

/** Copies `body`; asks for the next chunk only when the socket took the last one. */
async function pump(body: ReadableStream<Uint8Array>, outgoing: http.ServerResponse, sent: Sent): Promise<void> {
  const lender = lenderOf(body);
  const reader = body.getReader();
  let wake: (() => void) | null = null;
  let unturnedBytes = 0;
  outgoing.on("drain", () => wake?.());
  outgoing.once("close", () => {
    wake?.();
    // This also ends a read() that waits for pieces nobody wants any more.
    reader.cancel().catch(() => {});
  });
  // A body that ends in an error while the client takes nothing must not leave its connection behind.
  reader.closed.catch(() => outgoing.destroy());
  pumping++;
  try {
    while (!outgoing.destroyed) {
      const { done, value } = await reader.read();
      if (outgoing.destroyed) return;
      if (done) {
        sent(false);
        outgoing.end();
        return;
      }
      // Release only chunks that the system has taken: a broken connection may still refer to the others for a moment.
      if (!outgoing.write(value, (error) => error ? undefined : lender?.release(value))) {
        sent(false);
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (!outgoing.writableNeedDrain || outgoing.destroyed) resolve();
        });
      }
      sent(true);
      // When the kernel takes everything at once, even "drain" fires without a turn of the event loop.
      unturnedBytes += value.length;
      if (pumping > 1 || unturnedBytes >= TURN_BYTES) {
        unturnedBytes = 0;
        await new Promise<void>((resolve) => setImmediate(resolve));
        if (SOCKETS_CHECKED) noteTurn();
      }
    }
  } catch {
    // The body failed after the head was sent: cutting the connection is the only way left to report it.
    outgoing.destroy();
  } finally {
    pumping--;
  }
}
