/** HTTP serving on node:http: Request in, Response out, with backpressure and cancel. */
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { HttpPort, HttpServer, SocketAddress } from "../../src/ports.ts";
import { lenderOf } from "../../src/bytes/lent-chunks.ts";
import { webReadable } from "../shared/node-streams.ts";
import { bindError, formatAddress } from "../shared/os-error.ts";

/** A client must send its whole request in this time, ms; responses may take for ever. */
const REQUEST_TIMEOUT_MS = 60_000;
/**
 * A client whose body is not wanted has this long to notice the answer, ms. Closing at once, with bytes of it unread, would
 * take the answer away from it (RFC 9112 section 9.6).
 */
const LINGER_MS = 3000;
/**
 * A body that is at hand may fill a fast client's socket without ever waiting. After this many bytes, of several answers
 * after each chunk, the others get their turn: new connections, peers, and clients that would else drift apart until
 * no two of them read the same bytes.
 */
const TURN_BYTES = 1024 * 1024;
/** While closing, connections that fell idle are looked for this often, ms. */
const IDLE_CHECK_MS = 50;

/** HTTP on node:http. Bun uses it too: Bun.serve drops the Content-Length of a streamed body. */
export const nodeHttp: HttpPort = {
  serve(at, handler): Promise<HttpServer> {
    return new Promise((resolve, reject) => {
      let local: SocketAddress = at;
      const connections = new Set<Socket>();
      const server = http.createServer({ requestTimeout: REQUEST_TIMEOUT_MS, noDelay: true }, (incoming, outgoing) => {
        answer(incoming, outgoing, local, handler).catch(() => outgoing.destroy());
      });
      server.on("connection", (socket: Socket) => {
        connections.add(socket);
        socket.once("close", () => connections.delete(socket));
      });
      server.once("error", (error) => reject(bindError(error, at, "HTTP")));
      server.listen({ host: at.host, port: at.port }, () => {
        server.removeAllListeners("error");
        server.on("error", () => {});
        const { address, port } = server.address() as AddressInfo;
        local = { host: address, port };
        let closing: Promise<void> | null = null;
        resolve({ address: local, close: (graceMs) => (closing ??= close(server, connections, graceMs)) });
      });
    });
  },
};

function close(server: http.Server, connections: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    // A kept-alive connection that falls idle after its last answer would hold the server open.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
    const timer = setTimeout(() => {
      for (const socket of connections) socket.destroy();
      server.closeAllConnections();
    }, graceMs);
    server.close(() => {
      clearInterval(idle);
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}

async function answer(
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
  local: SocketAddress,
  handler: Parameters<HttpPort["serve"]>[1],
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
  await send(response, incoming, outgoing);
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

/** Cancelling it leaves the connection alone: the answer is still to come. */
function bodyOf(incoming: http.IncomingMessage): ReadableStream<Uint8Array> {
  return webReadable(incoming, undefined, () => incoming.pause());
}

/** Drops the rest of a body that nobody read, and the connection if it does not end soon. */
function dropBody(incoming: http.IncomingMessage): void {
  const { socket } = incoming;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  const done = () => clearTimeout(timer);
  incoming.once("end", done);
  socket.once("close", done);
  incoming.resume();
}

async function send(response: Response, incoming: http.IncomingMessage, outgoing: http.ServerResponse): Promise<void> {
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
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  await pump(body, outgoing);
}

/** Bodies being copied. */
let pumping = 0;

/** Copies `body`; asks for the next chunk only when the socket took the last one. */
async function pump(body: ReadableStream<Uint8Array>, outgoing: http.ServerResponse): Promise<void> {
  const lender = lenderOf(body);
  const reader = body.getReader();
  let wake: (() => void) | null = null;
  let unturnedBytes = 0;
  outgoing.on("drain", () => wake?.());
  outgoing.once("close", () => {
    wake?.();
    // Also ends a read() that waits for pieces nobody wants any more.
    reader.cancel().catch(() => {});
  });
  pumping++;
  try {
    while (!outgoing.destroyed) {
      const { done, value } = await reader.read();
      if (outgoing.destroyed) return;
      if (done) {
        outgoing.end();
        return;
      }
      // Only what the system has taken: a connection that breaks may hold the rest a moment longer.
      if (!outgoing.write(value, (error) => error ? undefined : lender?.release(value))) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (!outgoing.writableNeedDrain || outgoing.destroyed) resolve();
        });
      }
      // Even a drain may come without a turn of the event loop: when the kernel takes all at once.
      unturnedBytes += value.length;
      if (pumping > 1 || unturnedBytes >= TURN_BYTES) {
        unturnedBytes = 0;
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    }
  } catch {
    // The body failed after the head was sent: cutting the connection is the only way left to tell.
    outgoing.destroy();
  } finally {
    pumping--;
  }
}
