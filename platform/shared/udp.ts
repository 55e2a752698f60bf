/** UDP on node:dgram, which all three runtimes have. */
import dgram from "node:dgram";
import net from "node:net";
import type { SocketAddress, UdpBindOptions, UdpPort, UdpSocket } from "../../src/ports.ts";
import { bindError, errnoOf } from "./os-error.ts";
import { handled } from "./stray.ts";

/** Hops a multicast datagram may take: the local network only (BEP 14). */
const MULTICAST_TTL = 1;

/** Asks the kernel to keep `bytes` for the UDP sockets of this process that are bound to `port`. */
export type EnlargeReceiveBuffer = (port: number, bytes: number) => void;

/** UDP of this machine. `alsoEnlarge` is for a runtime whose own call does not reach the kernel. */
export function createUdpPort(alsoEnlarge: EnlargeReceiveBuffer = () => {}): UdpPort {
  return { bind: (options) => bind(options, alsoEnlarge) };
}

function bind(options: UdpBindOptions, alsoEnlarge: EnlargeReceiveBuffer): Promise<UdpSocket> {
  return new Promise((resolve, reject) => {
    const host = options.host ?? "0.0.0.0";
    const at = { host, port: options.port ?? 0 };
    const multicast = options.multicastGroup !== undefined;
    const socket = dgram.createSocket({ type: net.isIPv6(host) ? "udp6" : "udp4", reuseAddr: multicast });
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
      if (options.receiveBufferBytes !== undefined) enlarge(socket, options.receiveBufferBytes, alsoEnlarge);
      socket.off("error", fail);
      // ICMP errors arrive here; UDP guarantees no delivery, so they are ignored.
      socket.on("error", () => {});
      resolve(wrap(socket));
    });
  });
}

/** Asks for a larger receive buffer. The kernel may grant less, and a runtime that cannot ask keeps the default. */
function enlarge(socket: dgram.Socket, bytes: number, alsoEnlarge: EnlargeReceiveBuffer): void {
  try {
    socket.setRecvBufferSize(bytes);
    alsoEnlarge(socket.address().port, bytes);
  } catch {
    // A small buffer loses datagrams under load, but is no reason not to listen.
  }
}

function joinGroup(socket: dgram.Socket, group: string, at: string | undefined): void {
  socket.addMembership(group, at);
  socket.setMulticastTTL(MULTICAST_TTL);
  socket.setMulticastLoopback(true);
  if (at !== undefined) socket.setMulticastInterface(at);
}

function wrap(socket: dgram.Socket): UdpSocket {
  const { address, port } = socket.address();
  let closed = false;
  return {
    address: { host: address, port },
    onMessage(handler: (data: Uint8Array, from: SocketAddress) => void) {
      socket.on("message", (data, from) => {
        if (!closed) handled(() => handler(new Uint8Array(data), { host: from.address, port: from.port }));
      });
    },
    send: (data, to) =>
      new Promise((resolve) => {
        if (closed) return resolve();
        const attempt = (again: boolean) => {
          try {
            socket.send(data, to.port, to.host, (error) => {
              // Some runtimes report the refusal of an earlier datagram here and do not send this one.
              if (again && !closed && errnoOf(error) === "ECONNREFUSED") attempt(false);
              else resolve();
            });
          } catch {
            resolve();
          }
        };
        attempt(true);
      }),
    close() {
      if (closed) return;
      closed = true;
      closeQuietly(socket);
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
