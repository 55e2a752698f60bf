/**
 * Puts AAC into the packets that the original sound had. Packets that are not needed become null packets; the number of the
 * others stays the same modulo 16, so that the continuity counters of the next run continue from this one's.
 */
import {
  FIELD_DISCONTINUITY,
  FIELD_PCR,
  fieldBytes,
  PACKET_BYTES,
  pidOf,
  SYNC_BYTE,
} from "../../../bytes/ts/packet.ts";
import { writeNullPacket } from "../../mux/ts/packets.ts";
import { PES_HEADER_PTS_BYTES, writePesHeader } from "../../mux/ts/pes.ts";
import type { AudioPacket } from "./window.ts";

/** A PES to be placed. */
export interface LaidPes {
  /** Indexes `[begin, end)` of the packets that carried the original sound of its time. */
  readonly begin: number;
  readonly end: number;
  /** 33 bits, 90 kHz. */
  readonly pts90k: number;
  /** ADTS frames. */
  readonly payload: Uint8Array;
}

const AUDIO_STREAM_ID = 0xc0;
const BODY_BYTES = PACKET_BYTES - 4;
/** An adaptation field with a clock: length, flags, six bytes. */
const PCR_FIELD_BYTES = 8;

/** With two packets per PES, the first need not wait for the next PES where segments are cut (`CounterRewriter`). */
const LEAST_PACKETS = 2;

/** Bytes of the adaptation field that a packet keeps: those of its clock, if it has one. */
function keptFieldBytes(packet: Uint8Array): number {
  const hasPcr = fieldBytes(packet, 0) >= PCR_FIELD_BYTES && (packet[5]! & FIELD_PCR) !== 0;
  return hasPcr ? PCR_FIELD_BYTES : 0;
}

/** Payload bytes that the packet can take. */
export function roomOf(packet: Uint8Array): number {
  return BODY_BYTES - keptFieldBytes(packet);
}

/** Result of `fillPackets`. */
export interface Filled {
  /** As many packets as were given, 188 bytes each, in the same order. */
  readonly packets: Uint8Array;
  /** Whether every PES found a place that ends no later than the original sound of its time. */
  readonly inTime: boolean;
}

/** The packets of one PES. */
interface Place {
  start: number;
  count: number;
}

/**
 * Places `list` (in order, the first beginning at 0) in `slots`. `nextCounter` is the continuity counter of the packet that
 * follows them in the stream; null at the end of the stream. PES without room are left out.
 */
export function fillPackets(
  slots: readonly AudioPacket[],
  list: readonly LaidPes[],
  nextCounter: number | null,
): Filled {
  const rooms = slots.map(({ bytes }) => roomOf(bytes));
  const late = latestPlaces(rooms, list);
  const places = late ?? earliestPlaces(rooms, list);
  const firstCounter = (slots[0]?.bytes[3] ?? 0) & 15;
  if (nextCounter !== null) {
    const used = places.reduce((sum, { count }) => sum + count, 0);
    widen(places, list, slots.length, (nextCounter - firstCounter - used) & 15);
  }
  const packets = new Uint8Array(slots.length * PACKET_BYTES);
  let counter = firstCounter;
  let place = 0;
  for (let i = 0; i < slots.length;) {
    const next = places[place];
    if (next === undefined || i < next.start) {
      writeEmpty(packets, i, slots[i]!.bytes, (counter + 15) & 15);
      i++;
      continue;
    }
    writePes(packets, slots, next, pesOf(list[place++]!), counter);
    counter = (counter + next.count) & 15;
    i += next.count;
  }
  return { packets, inTime: late !== null };
}

const pesBytes = ({ payload }: LaidPes): number => PES_HEADER_PTS_BYTES + payload.length;

/** Places PES as late as the original sound of their time, or earlier if later ones need the room; null if they do not fit. */
function latestPlaces(rooms: readonly number[], list: readonly LaidPes[]): Place[] | null {
  const places: Place[] = [];
  let limit = rooms.length;
  for (const pes of list.toReversed()) {
    const end = Math.min(limit, pes.end);
    let start = Math.max(0, end);
    for (let left = pesBytes(pes); left > 0 || end - start < LEAST_PACKETS; left -= rooms[start]!) {
      if (--start < 0) return null;
    }
    start = Math.min(start, pes.begin);
    // Counted from `start` it may need fewer packets than counted back from `end`.
    places.unshift({ start, count: packetsFrom(rooms, start, pesBytes(pes)) });
    limit = start;
  }
  return places;
}

/** Places PES one after the other from the first packet on, as many as fit. */
function earliestPlaces(rooms: readonly number[], list: readonly LaidPes[]): Place[] {
  const places: Place[] = [];
  let free = 0;
  for (const pes of list) {
    const count = packetsFrom(rooms, free, pesBytes(pes));
    if (free + count > rooms.length) break;
    places.push({ start: free, count });
    free += count;
  }
  return places;
}

/** How many packets from `start` on `bytes` need; one more than there are if they do not suffice. */
function packetsFrom(rooms: readonly number[], start: number, bytes: number): number {
  let count = 0;
  for (let left = bytes; left > 0; count++) left -= rooms[start + count] ?? Infinity;
  return Math.max(count, LEAST_PACKETS);
}

/** Spreads PES over `more` packets than they need, where the packets after them are free. */
function widen(places: readonly Place[], list: readonly LaidPes[], packetCount: number, more: number): void {
  let left = more;
  for (const [i, place] of places.entries()) {
    const free = (places[i + 1]?.start ?? packetCount) - place.start - place.count;
    // Each packet carries at least one byte, and the first one the header.
    const taken = Math.min(left, free, list[i]!.payload.length - place.count);
    if (taken <= 0) continue;
    place.count += taken;
    left -= taken;
  }
}

function pesOf({ pts90k, payload }: LaidPes): Uint8Array {
  const bytes = new Uint8Array(PES_HEADER_PTS_BYTES + payload.length);
  writePesHeader(bytes, 0, AUDIO_STREAM_ID, pts90k, pts90k, payload.length);
  bytes.set(payload, PES_HEADER_PTS_BYTES);
  return bytes;
}

/** Writes a null packet or, if the packet has a clock, only the clock (the counter does not advance then, 2.4.3.3). */
function writeEmpty(out: Uint8Array, index: number, original: Uint8Array, counter: number): void {
  const at = index * PACKET_BYTES;
  writeNullPacket(out, at);
  if (keptFieldBytes(original) === 0) return;
  writeHead(out, at, original, 0x20 | counter, false);
  writeField(out, at, original, BODY_BYTES);
}

function writeHead(out: Uint8Array, at: number, original: Uint8Array, control: number, starts: boolean): void {
  const pid = pidOf(original, 0);
  out[at] = SYNC_BYTE;
  out[at + 1] = (starts ? 0x40 : 0) | (pid >> 8);
  out[at + 2] = pid & 0xff;
  out[at + 3] = control;
}

/** Writes an adaptation field of `size` bytes: the packet's clock, then stuffing. */
function writeField(out: Uint8Array, at: number, original: Uint8Array, size: number): void {
  if (size === 0) return;
  out.fill(0xff, at + 4, at + 4 + size);
  out[at + 4] = size - 1;
  if (size > 1) out[at + 5] = 0;
  if (keptFieldBytes(original) === 0) return;
  out[at + 5] = FIELD_PCR | (original[5]! & FIELD_DISCONTINUITY);
  out.set(original.subarray(6, 12), at + 6);
}

/** Writes `pes` evenly over its packets: a packet with only a few bytes would be too small to align counters with. */
function writePes(
  out: Uint8Array,
  slots: readonly AudioPacket[],
  { start, count }: Place,
  pes: Uint8Array,
  firstCounter: number,
): void {
  let from = 0;
  /** Room in the packets after this one. */
  let roomAfter = 0;
  for (let i = 0; i < count; i++) roomAfter += roomOf(slots[start + i]!.bytes);
  for (let i = 0; i < count; i++) {
    const original = slots[start + i]!.bytes;
    const at = (start + i) * PACKET_BYTES;
    const even = Math.ceil((pes.length - from) / (count - i));
    roomAfter -= roomOf(original);
    // Packets with a clock take less and others make up for it; the header stays in one piece.
    const least = i === 0 ? PES_HEADER_PTS_BYTES : 0;
    const take = Math.min(roomOf(original), Math.max(even, least, pes.length - from - roomAfter));
    const field = BODY_BYTES - take;
    writeHead(out, at, original, (field > 0 ? 0x30 : 0x10) | ((firstCounter + i) & 15), i === 0);
    writeField(out, at, original, field);
    out.set(pes.subarray(from, from + take), at + 4 + field);
    from += take;
  }
}
