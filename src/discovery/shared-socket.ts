/** One UDP port for the DHT and for connections of peers (uTP): forwarding one port at the router is enough for both. */
import type { SocketAddress, UdpSocket } from "../ports.ts";

/** First byte of every DHT message: a bencoded dictionary (BEP 5). */
const DICTIONARY = 0x64;

/**
 * What the kernel is asked to keep for this port, bytes. With Linux's 208 KiB, one download of 8 MB over uTP on loopback had
 * 167 to 453 of its 5,800 packets sent again; with this, one.
 */
export const PEER_RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;

/** A bound socket in two parts. */
export interface SharedSocket {
  /** Receives what looks like messages of the DHT. Closing it closes both. */
  readonly dht: UdpSocket;
  /** Receives everything else. Closing it leaves the DHT's part open. */
  readonly peers: UdpSocket;
}

/** Divides the datagrams of `socket` between the two by their first byte. */
export function shareSocket(socket: UdpSocket): SharedSocket {
  const part = (isOurs: (first: number | undefined) => boolean, closes: boolean): UdpSocket => {
    let isClosed = false;
    return {
      address: socket.address,
      receiveBufferBytes: socket.receiveBufferBytes,
      onMessage: (handler: (data: Uint8Array, from: SocketAddress) => void) => {
        socket.onMessage((data, from) => {
          if (!isClosed && isOurs(data[0])) handler(data, from);
        });
      },
      send: (data, to) => isClosed ? Promise.resolve() : socket.send(data, to),
      close: () => {
        isClosed = true;
        if (closes) socket.close();
      },
    };
  };
  return { dht: part((first) => first === DICTIONARY, true), peers: part((first) => first !== DICTIONARY, false) };
}
