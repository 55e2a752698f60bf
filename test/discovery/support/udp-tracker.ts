/** A UDP tracker inside the test (BEP 15). */
import type { UdpPort, UdpSocket } from "../../../src/ports.ts";

/** Fields of a datagram that the tracker got. */
export interface SeenDatagram {
  readonly action: number;
  readonly connectionId: bigint;
  readonly bytes: Uint8Array;
}

/** What the tracker sends back: the body after action and transaction id; null sends nothing. */
export type UdpReply = (
  seen: SeenDatagram,
  count: number,
) => { action?: number; body: Uint8Array; transactionId?: number } | null;

/** A running tracker. */
export interface UdpTracker {
  readonly port: number;
  readonly seen: SeenDatagram[];
  close(): void;
}

const CONNECTION_ID = 0x1122334455667788n;

/** The body of a connect reply. */
export function connectBody(connectionId: bigint = CONNECTION_ID): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, connectionId);
  return bytes;
}

/** The body of an announce reply. */
export function announceBody(
  intervalSeconds: number,
  leechers: number,
  seeders: number,
  peers: Uint8Array,
): Uint8Array {
  const bytes = new Uint8Array(12 + peers.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, intervalSeconds);
  view.setUint32(4, leechers);
  view.setUint32(8, seeders);
  bytes.set(peers, 12);
  return bytes;
}

/** Starts a tracker whose replies come from `reply`. */
export async function startUdpTracker(udp: UdpPort, reply: UdpReply, host = "127.0.0.1"): Promise<UdpTracker> {
  const socket: UdpSocket = await udp.bind({ host });
  const seen: SeenDatagram[] = [];
  socket.onMessage((bytes, from) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const datagram = { action: view.getUint32(8), connectionId: view.getBigUint64(0), bytes };
    seen.push(datagram);
    const answer = reply(datagram, seen.length);
    if (answer === null) return;
    const packet = new Uint8Array(8 + answer.body.length);
    const fields = new DataView(packet.buffer);
    fields.setUint32(0, answer.action ?? datagram.action);
    fields.setUint32(4, answer.transactionId ?? view.getUint32(12));
    packet.set(answer.body, 8);
    void socket.send(packet, from);
  });
  return { port: socket.address.port, seen, close: () => socket.close() };
}
