/** UDP on node:dgram, which all three runtimes have. */
import dgram from "node:dgram";
import dns from "node:dns";
import net from "node:net";
import type { SocketAddress, UdpBindOptions, UdpPort, UdpSocket } from "../../src/ports.ts";
import { mapped, unmapped } from "./mapped.ts";
import { bindError, errnoOf } from "./os-error.ts";
import { handled } from "./stray.ts";

/** Hops a multicast datagram may take: the local network only (BEP 14). */
const MULTICAST_TTL = 1;

/**
 * Datagrams taken at once besides the one that the runtime delivered. At 8 Mb/s so many come in 80 ms; a turn of this length
 * takes about a millisecond.
 */
const BATCH = 64;

/** Datagrams that wait to be sent, for each socket: what comes on top is lost, as in a full buffer of the kernel. About 1.5 MB. */
const MAX_WAITING = 1024;

/** Takes datagrams from a socket. */
export interface FastReceiver {
  /** What the kernel keeps for the socket, bytes. */
  readonly bufferBytes: number;
  /** The next datagram that waits at the socket, which must be open; null when there is none. */
  next(): { readonly data: Uint8Array; readonly from: SocketAddress } | null;
}

/**
 * Asks the kernel to keep `bytes` for the UDP sockets of this process that are bound to `port`. Returns what takes datagrams
 * from the socket faster than the runtime does; null when there is nothing of this kind.
 */
export type OpenFastReceiver = (port: number, bytes: number) => FastReceiver | null;

/** UDP of this machine. `fast` is for a runtime that only pretends to enlarge receive buffers, and that delivers slowly. */
export function createUdpPort(fast: OpenFastReceiver | null = null): UdpPort {
  return { bind: (options) => bind(options, fast) };
}

function bind(options: UdpBindOptions, fast: OpenFastReceiver | null): Promise<UdpSocket> {
  return new Promise((resolve, reject) => {
    const host = options.host ?? "0.0.0.0";
    const at = { host, port: options.port ?? 0 };
    const multicast = options.multicastGroup !== undefined;
    const type = net.isIPv6(host) ? "udp6" : "udp4";
    const socket = dgram.createSocket({ type, reuseAddr: multicast, lookup: lookUp });
    const fail = (cause: unknown) => {
      reject(bindError(cause, at, "UDP"));
      closeQuietly(socket);
    };
    socket.once("error", fail);
    socket.bind({ address: host, port: at.port, exclusive: true }, () => {
      try {
        if (multicast) joinGroup(socket, options.multicastGroup!, options.multicastInterface);
      } catch (cause) {
        return fail(cause);
      }
      const more = options.receiveBufferBytes === undefined ? null : enlarge(socket, options.receiveBufferBytes, fast);
      socket.off("error", fail);
      // ICMP errors arrive here; UDP guarantees no delivery, so they are ignored.
      socket.on("error", () => {});
      resolve(wrap(socket, more, more?.bufferBytes ?? (fast === null ? receiveBufferOf(socket) : undefined)));
    });
  });
}

/**
 * Looks up names, and returns addresses as they are. Node asks for each datagram, and its own lookup takes a seventh of the time
 * of sending one, even for an address.
 */
const lookUp: NonNullable<dgram.SocketOptions["lookup"]> = (host, options, callback) => {
  const family = net.isIP(host);
  if (family === 0) dns.lookup(host, options, callback);
  else callback(null, host, family);
};

/** Asks for a larger receive buffer. The kernel may grant less, and a runtime that cannot ask keeps the default. */
function enlarge(socket: dgram.Socket, bytes: number, fast: OpenFastReceiver | null): FastReceiver | null {
  try {
    socket.setRecvBufferSize(bytes);
    return fast?.(socket.address().port, bytes) ?? null;
  } catch {
    // A small buffer loses datagrams under load, but is no reason not to listen.
    return null;
  }
}

function receiveBufferOf(socket: dgram.Socket): number | undefined {
  try {
    return socket.getRecvBufferSize();
  } catch {
    return undefined;
  }
}

function joinGroup(socket: dgram.Socket, group: string | readonly string[], at: string | undefined): void {
  for (const one of [group].flat()) socket.addMembership(one, at);
  socket.setMulticastTTL(MULTICAST_TTL);
  socket.setMulticastLoopback(true);
  if (at !== undefined) socket.setMulticastInterface(at);
}

function wrap(socket: dgram.Socket, more: FastReceiver | null, receiveBufferBytes: number | undefined): UdpSocket {
  const { address, port } = socket.address();
  const isIpv6 = net.isIPv6(address);
  let closed = false;
  const handlers: ((data: Uint8Array, from: SocketAddress) => void)[] = [];
  const deliver = (data: Uint8Array, sender: SocketAddress) => {
    const from = isIpv6 ? { host: unmapped(sender.host), port: sender.port } : sender;
    // What one handler keeps the others may not change.
    for (const [n, handler] of handlers.entries()) {
      if (!closed) handled(() => handler(n === 0 ? data : data.slice(), from));
    }
  };
  // One after the other: Deno lets datagrams that are sent in one turn leave in reverse order, and all runtimes spend less time.
  const waiting: { readonly data: Uint8Array; readonly to: SocketAddress; readonly sent: () => void }[] = [];
  const sendFirst = (again: boolean) => {
    const { data, to } = waiting[0]!;
    try {
      // Node refuses an IPv4 address on a socket of IPv6.
      socket.send(data, to.port, isIpv6 ? mapped(to.host) : to.host, (error) => {
        if (closed) return;
        // Some runtimes report the refusal of an earlier datagram here and do not send this one.
        if (again && errnoOf(error) === "ECONNREFUSED") sendFirst(false);
        else sendNext();
      });
    } catch {
      sendNext();
    }
  };
  const sendNext = () => {
    waiting.shift()!.sent();
    if (waiting.length > 0) sendFirst(true);
  };
  socket.on("message", (data, from) => {
    deliver(new Uint8Array(data), { host: from.address, port: from.port });
    // Not after close(): the descriptor may belong to another file by then.
    for (let i = 0; more !== null && i < BATCH && !closed; i++) {
      const next = more.next();
      if (next === null) break;
      deliver(next.data, next.from);
    }
  });
  return {
    address: { host: address, port },
    receiveBufferBytes,
    onMessage: (handler) => void handlers.push(handler),
    send: (data, to) =>
      new Promise((resolve) => {
        if (closed || waiting.length === MAX_WAITING) return resolve();
        waiting.push({ data, to, sent: resolve });
        if (waiting.length === 1) sendFirst(true);
      }),
    close() {
      if (closed) return;
      closed = true;
      closeQuietly(socket);
      for (const { sent } of waiting.splice(0)) sent();
    },
  };
}

function closeQuietly(socket: dgram.Socket): void {
  try {
    socket.close();
  } catch {
    // The socket was not bound, or is closed already.
  }
}
