/** Peers that mean harm, down to the bytes: raw connections to an engine, and listeners that it dials. */
import { Buffer } from "node:buffer";
import { connect, createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { encodeBencode } from "../../../src/bytes/bencode.ts";
import { fromHex } from "../../../src/bytes/hex.ts";
import type { SocketAddress } from "../../../src/ports.ts";

/** A wait for the engine ends in failure after this, ms. */
const WAIT_MS = 10_000;

/** Bytes of a handshake (BEP 3). */
export const HANDSHAKE_BYTES = 68;

/** A handshake that offers DHT, the fast extension and extended messages. */
export function handshake(infohashHex: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HANDSHAKE_BYTES);
  bytes.set(new TextEncoder().encode("\x13BitTorrent protocol"));
  bytes.set([0, 0, 0, 0, 0, 0x10, 0, 0x05], 20);
  bytes.set(fromHex(infohashHex), 28);
  bytes.set(new TextEncoder().encode("-XX0001-"), 48);
  crypto.getRandomValues(bytes.subarray(56));
  return bytes;
}

/** One message: length, id, then numbers of 32 bits or bytes. */
export function message(id: number, ...parts: readonly (number | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const body = Buffer.concat(parts.map((part) => {
    if (typeof part !== "number") return Buffer.from(part);
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(part);
    return bytes;
  }));
  const bytes = Buffer.alloc(5 + body.length);
  bytes.writeUInt32BE(1 + body.length);
  bytes[4] = id;
  bytes.set(body, 5);
  return new Uint8Array(bytes);
}

/** An extended message (BEP 10): a dictionary and what follows it. */
export function extended(
  id: number,
  dictionary: unknown,
  rest: Uint8Array = new Uint8Array(),
): Uint8Array<ArrayBuffer> {
  return message(20, new Uint8Array([id, ...encodeBencode(dictionary as never)]), rest);
}

/** Opens a connection to the engine's peer port from `localAddress`; resolves when it is established. */
export async function dial(peer: string, localAddress: string): Promise<Socket> {
  const at = peer.lastIndexOf(":");
  const socket = connect({ host: peer.slice(0, at), port: Number(peer.slice(at + 1)), localAddress });
  await once(socket, "connect", { signal: AbortSignal.timeout(WAIT_MS) });
  socket.on("error", () => {});
  return socket;
}

/** Resolves with the engine's handshake, or null when it hung up before. */
export function greeted(socket: Socket): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const timer = setTimeout(() => reject(new Error("the engine neither shook hands nor hung up")), WAIT_MS);
    const settle = (value: Uint8Array | null) => {
      clearTimeout(timer);
      socket.off("data", read);
      resolve(value);
    };
    const read = (chunk: Uint8Array) => {
      received = Buffer.concat([received, chunk]);
      if (received.length >= HANDSHAKE_BYTES) settle(new Uint8Array(received));
    };
    socket.on("data", read);
    socket.once("close", () => settle(null));
  });
}

/** Sends `bytes` again and again, as fast as the engine reads, for `forMs` or until it hangs up; returns the bytes sent. */
export async function flood(socket: Socket, bytes: Uint8Array, forMs: number): Promise<number> {
  const block = Buffer.concat(new Array<Uint8Array>(Math.max(1, Math.ceil(65_536 / bytes.length))).fill(bytes));
  socket.on("data", () => {});
  let sent = 0;
  const untilMs = performance.now() + forMs;
  while (!socket.destroyed && socket.writable && performance.now() < untilMs) {
    const room = socket.write(block);
    sent += block.length;
    if (room) await new Promise((resolve) => setImmediate(resolve));
    else await drained(socket, untilMs - performance.now());
  }
  return sent;
}

function drained(socket: Socket, forMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      socket.off("drain", done);
      socket.off("close", done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, forMs));
    socket.on("drain", done);
    socket.on("close", done);
  });
}

/** A listener, and what it received. */
export interface Listening {
  readonly address: SocketAddress;
  /** Connections so far. */
  readonly connections: number;
  /** Bytes received so far. */
  readonly bytes: number;
  close(): Promise<void>;
}

/** Listens on `host`; `serve` gets each connection. */
export async function listen(host: string, serve: (socket: Socket) => void = () => {}): Promise<Listening> {
  let connections = 0;
  let bytes = 0;
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => bytes += chunk.length);
    socket.on("close", () => sockets.delete(socket));
    serve(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    address: { host, port },
    get connections() {
      return connections;
    },
    get bytes() {
      return bytes;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Splits what a peer receives into messages without their lengths; the whole handshake comes first. */
export function onMessages(socket: Socket, received: (message: Uint8Array) => void): void {
  let rest = Buffer.alloc(0);
  let greetedYet = false;
  socket.on("data", (chunk: Uint8Array) => {
    rest = Buffer.concat([rest, chunk]);
    if (!greetedYet && rest.length >= HANDSHAKE_BYTES) {
      greetedYet = true;
      received(new Uint8Array(rest.subarray(0, HANDSHAKE_BYTES)));
      rest = rest.subarray(HANDSHAKE_BYTES);
    }
    while (greetedYet && rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE()) {
      const end = 4 + rest.readUInt32BE();
      if (end > 4) received(new Uint8Array(rest.subarray(4, end)));
      rest = rest.subarray(end);
    }
  });
}
