/**
 * Whole transport packets out of the payloads of datagrams. Most senders fill datagrams with seven whole packets; ffmpeg
 * cuts the stream every 1472 bytes and wherever it flushes, so a packet begins in one datagram and ends in the next.
 */
import { concatBytes } from "../bytes/hex.ts";
import { areWholePackets, PACKET_BYTES, SYNC_BYTE } from "../bytes/ts/packet.ts";
import { LEAST_SYNCS } from "../bytes/ts/sync.ts";

const NONE = new Uint8Array();

/** Joins the datagrams of one stream. Keeps less than one packet. */
export class DatagramPackets {
  #rest: Uint8Array = NONE;

  /**
   * The whole packets that `payload`, the next one in order, completes; they may be none. Returns null for a payload that is no part of a
   * transport stream, which is left out. After a lost datagram the packet that it cut is left out, too.
   */
  push(payload: Uint8Array): Uint8Array | null {
    const due = this.#rest.length === 0 ? 0 : PACKET_BYTES - this.#rest.length;
    const continues = due > 0 && areSyncs(payload, due);
    const from = continues ? 0 : firstPacketIn(payload);
    if (from === null) return null;
    const bytes = continues ? concatBytes([this.#rest, payload]) : payload.subarray(from);
    const end = bytes.length - bytes.length % PACKET_BYTES;
    this.#rest = bytes.subarray(end);
    return bytes.subarray(0, end);
  }

  /** The next payload does not continue the last one. */
  reset(): void {
    this.#rest = NONE;
  }
}

/** Where the first packet of `payload` begins, without knowing what came before; null: it is no transport stream. */
export function firstPacketIn(payload: Uint8Array): number | null {
  if (payload.length > 0 && areSyncs(payload, 0)) return 0;
  for (let at = 1; at < PACKET_BYTES && at + (LEAST_SYNCS - 1) * PACKET_BYTES < payload.length; at++) {
    if (areSyncs(payload, at)) return at;
  }
  // Packets with a damaged sync byte among them.
  return areWholePackets(payload) ? 0 : null;
}

/** True when a packet begins at `from`, and at each packet's distance from it, as far as `payload` reaches. */
function areSyncs(payload: Uint8Array, from: number): boolean {
  for (let at = from; at < payload.length; at += PACKET_BYTES) if (payload[at] !== SYNC_BYTE) return false;
  return true;
}
