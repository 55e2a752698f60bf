/** Transport stream packets (ISO/IEC 13818-1, 2.4.3): headers, adaptation fields, PCR, and spreading a PES over packets. */
import { FIELD_PCR, FIELD_RANDOM_ACCESS, NULL_PID, PACKET_BYTES, SYNC_BYTE } from "../../../bytes/ts/packet.ts";
import { writePcr } from "../../../bytes/ts/stamps.ts";
import type { Payload } from "./payload.ts";

/** Bytes after the four-byte packet header. */
export const PACKET_BODY_BYTES = 184;
/** An adaptation field that carries a PCR and nothing else: length, flags, six bytes of PCR. */
export const PCR_FIELD_BYTES = 8;
/** `pcr90k` of a PES that carries no PCR. */
export const NO_PCR = -1;

function writeHeader(out: Uint8Array, at: number, pid: number, startsUnit: boolean, control: number, cc: number): void {
  out[at] = SYNC_BYTE;
  out[at + 1] = (startsUnit ? 0x40 : 0) | (pid >> 8);
  out[at + 2] = pid & 0xff;
  out[at + 3] = (control << 4) | (cc & 15);
}

/** The six reserved bits are ones; the 27 MHz extension is zero because every PCR falls on a 90 kHz tick. */
function putPcr(out: Uint8Array, at: number, pcr90k: number): void {
  out[at + 4] = 0x7e;
  out[at + 5] = 0;
  writePcr(out, at, pcr90k);
}

/** A null packet (2.4.1): decoders drop it. */
export function writeNullPacket(out: Uint8Array, at: number): void {
  writeHeader(out, at, NULL_PID, false, 1, 0);
  out.fill(0xff, at + 4, at + PACKET_BYTES);
}

/** A packet that carries only a PCR. `cc` is the counter of the last packet with payload: it does not advance (2.4.3.3). */
export function writePcrPacket(out: Uint8Array, at: number, pid: number, cc: number, pcr90k: number): void {
  writeHeader(out, at, pid, false, 2, cc);
  out[at + 4] = PACKET_BODY_BYTES - 1;
  out[at + 5] = FIELD_PCR;
  putPcr(out, at + 6, pcr90k);
  out.fill(0xff, at + 12, at + PACKET_BYTES);
}

/** A packet that continues its PID's PES with a single zero byte: trailing zeros mean nothing to any video codec. */
export function writeZeroPacket(out: Uint8Array, at: number, pid: number, cc: number): void {
  writeHeader(out, at, pid, false, 3, cc);
  out[at + 4] = PACKET_BODY_BYTES - 2;
  out[at + 5] = 0;
  out.fill(0xff, at + 6, at + PACKET_BYTES - 1);
  out[at + PACKET_BYTES - 1] = 0;
}

/** How many packets `payloadBytes` of PES need when the first one has an adaptation field of `fieldBytes`. */
export function packetsFor(payloadBytes: number, fieldBytes: number): number {
  const beyondFirst = payloadBytes - (PACKET_BODY_BYTES - fieldBytes);
  return beyondFirst <= 0 ? 1 : 1 + Math.ceil(beyondFirst / PACKET_BODY_BYTES);
}

/** Packets whose payload goes through the stage at once: that much stays in a processor's first-level cache. */
const STAGED_PACKETS = 64;
/** Holds payload until it is split into packets. Used within one synchronous call only. */
const stage = new Uint8Array(STAGED_PACKETS * PACKET_BODY_BYTES);
/**
 * The payload of each packet in the stage. Copying ready-made views costs half of making a view for each packet: most of a
 * packet's time is the call, not the bytes.
 */
const stagedBodies = Array.from(
  { length: STAGED_PACKETS },
  (_, i) => stage.subarray(i * PACKET_BODY_BYTES, (i + 1) * PACKET_BODY_BYTES),
);

/**
 * Writes the `pesBytes` of `payload` as `packets` packets at `out[at]`. Every packet gets at least one payload byte, so
 * callers may ask for more packets than needed (`pesBytes` ≥ `packets`) to bring continuity counters to a wanted value.
 */
export function spreadPes(
  out: Uint8Array,
  at: number,
  packets: number,
  payload: Pick<Payload, "take">,
  pesBytes: number,
  pid: number,
  firstCc: number,
  pcr90k: number,
  randomAccess: boolean,
): void {
  let left = pesBytes;
  let field = pcr90k !== NO_PCR ? PCR_FIELD_BYTES : 0;
  for (let i = 0; i < packets;) {
    const full = field > 0 ? 0 : fullPackets(packets - i, left);
    if (full > 0) {
      spreadFull(out, at + i * PACKET_BYTES, full, payload, pid, i === 0, firstCc + i);
      left -= full * PACKET_BODY_BYTES;
      i += full;
      continue;
    }
    const packet = at + i * PACKET_BYTES;
    const room = PACKET_BODY_BYTES - field;
    const keepBack = packets - 1 - i;
    const take = left - keepBack < room ? left - keepBack : room;
    const body = packet + PACKET_BYTES - take;
    payload.take(out, body, take);
    left -= take;
    const fieldBytes = PACKET_BODY_BYTES - take;
    writeHeader(out, packet, pid, i === 0, fieldBytes > 0 ? 3 : 1, firstCc + i);
    if (fieldBytes > 0) {
      out[packet + 4] = fieldBytes - 1;
      if (fieldBytes > 1) {
        out[packet + 5] = field > 0 ? FIELD_PCR | (randomAccess ? FIELD_RANDOM_ACCESS : 0) : 0;
        if (field > 0) putPcr(out, packet + 6, pcr90k);
        const stuffing = packet + 4 + (field > 0 ? field : 2);
        if (stuffing < body) out.fill(0xff, stuffing, body);
      }
    }
    field = 0;
    i++;
  }
}

/** How many of the next `packets` packets are full when each one must get a byte of `payloadBytes`. */
function fullPackets(packets: number, payloadBytes: number): number {
  const full = Math.floor((payloadBytes - packets) / (PACKET_BODY_BYTES - 1));
  return Math.max(0, Math.min(packets, full));
}

/** `packets` packets without adaptation field at `at`. */
function spreadFull(
  out: Uint8Array,
  at: number,
  packets: number,
  payload: Pick<Payload, "take">,
  pid: number,
  startsUnit: boolean,
  firstCc: number,
): void {
  const high = pid >> 8;
  const low = pid & 0xff;
  let packet = at;
  for (let done = 0; done < packets; done += STAGED_PACKETS) {
    const count = Math.min(STAGED_PACKETS, packets - done);
    payload.take(stage, 0, count * PACKET_BODY_BYTES);
    for (let i = 0; i < count; i++, packet += PACKET_BYTES) {
      out.set(stagedBodies[i]!, packet + 4);
      out[packet] = SYNC_BYTE;
      out[packet + 1] = high;
      out[packet + 2] = low;
      out[packet + 3] = 0x10 | ((firstCc + done + i) & 15);
    }
  }
  if (startsUnit) out[at + 1] = 0x40 | high;
}
