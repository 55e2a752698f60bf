/** Transport streams for tests, made from clips. */
import type { ByteSource } from "../../src/bytes/source.ts";
import { MemorySource } from "../support/memory-source.ts";
import { openTransportStream } from "../../src/media/ts-file/open-ts.ts";
import type { IndexedPresentation, PresentationOptions } from "../../src/media/model/types.ts";

const PACKET = 188;

function shiftTimestamp(bytes: Uint8Array, at: number, shift90k: number): void {
  const high = (bytes[at]! >> 1) & 7;
  const value = high * 2 ** 30 + (bytes[at + 1]! << 22) + ((bytes[at + 2]! >> 1) << 15) + (bytes[at + 3]! << 7) +
    (bytes[at + 4]! >> 1);
  const moved = (value + shift90k) % 2 ** 33;
  bytes[at] = (bytes[at]! & 0xf1) | (Math.floor(moved / 2 ** 30) << 1);
  bytes[at + 1] = Math.floor(moved / 2 ** 22) & 255;
  bytes[at + 2] = ((Math.floor(moved / 2 ** 15) & 127) << 1) | 1;
  bytes[at + 3] = Math.floor(moved / 2 ** 7) & 255;
  bytes[at + 4] = ((moved & 127) << 1) | 1;
}

function shiftPacket(packet: Uint8Array, shift90k: number): void {
  const field = (packet[3]! & 0x20) === 0 ? 0 : packet[4]! + 1;
  if (field >= 8 && (packet[5]! & 0x10) !== 0) {
    const base = packet[6]! * 2 ** 25 + (packet[7]! << 17) + (packet[8]! << 9) + (packet[9]! << 1) + (packet[10]! >> 7);
    const moved = (base + shift90k) % 2 ** 33;
    packet[6] = Math.floor(moved / 2 ** 25);
    packet[7] = Math.floor(moved / 2 ** 17) & 255;
    packet[8] = Math.floor(moved / 2 ** 9) & 255;
    packet[9] = Math.floor(moved / 2) & 255;
    packet[10] = ((moved & 1) << 7) | (packet[10]! & 127);
  }
  const pes = 4 + field;
  if ((packet[1]! & 0x40) === 0 || packet[pes] !== 0 || packet[pes + 1] !== 0 || packet[pes + 2] !== 1) return;
  if ((packet[pes + 7]! & 0x80) !== 0) shiftTimestamp(packet, pes + 9, shift90k);
  if ((packet[pes + 7]! & 0x40) !== 0) shiftTimestamp(packet, pes + 14, shift90k);
}

/** The clip `times` times in a row, each `period90k` later, counters running on. */
export function repeatTs(ts: Uint8Array, times: number, period90k: number): Uint8Array {
  const out = new Uint8Array(ts.length * times);
  const counters = new Map<number, number>();
  for (let i = 0; i < times; i++) {
    out.set(ts, i * ts.length);
    for (let at = i * ts.length; at < (i + 1) * ts.length; at += PACKET) {
      const packet = out.subarray(at, at + PACKET);
      const pid = ((packet[1]! & 31) << 8) | packet[2]!;
      const payload = (packet[3]! & 0x10) !== 0 ? 1 : 0;
      const counter = ((counters.get(pid) ?? 15) + payload) & 15;
      counters.set(pid, counter);
      packet[3] = (packet[3]! & 0xf0) | counter;
      shiftPacket(packet, i * period90k);
    }
  }
  return out;
}

export const never = new AbortController().signal;

/** Opens bytes as a transport stream and makes its HLS plan, which has the duration. */
export async function openTs(
  bytes: Uint8Array | ByteSource,
  options: PresentationOptions = {},
): Promise<IndexedPresentation> {
  const source = bytes instanceof Uint8Array ? new MemorySource(bytes) : bytes;
  const presentation = await openTransportStream(source, { fileName: "a.ts", signal: never, ...options });
  const hls = await presentation.planHls(source, never);
  const { startMs, durationMs } = hls.segments.at(-1)!;
  return { ...presentation, hls, durationMs: startMs + durationMs };
}

/** All chunks as one. */
export async function gather(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
  }
  const out = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The segments of a presentation, in order. */
export async function segments(presentation: IndexedPresentation, source: ByteSource): Promise<Uint8Array[]> {
  const list: Uint8Array[] = [];
  for (const { index } of presentation.hls.segments) {
    list.push(await gather(presentation.hls.readSegment(index, source, never)));
  }
  return list;
}

/** Count of packets that break the counters' order. */
export function counterErrors(ts: Uint8Array): number {
  const last = new Map<number, number>();
  let errors = 0;
  for (let at = 0; at < ts.length; at += PACKET) {
    const pid = ((ts[at + 1]! & 31) << 8) | ts[at + 2]!;
    // Null packets have no counter (ISO/IEC 13818-1, 2.4.3.3).
    if (pid === 0x1fff) continue;
    const counter = ts[at + 3]! & 15;
    const before = last.get(pid);
    if (before !== undefined && counter !== ((ts[at + 3]! & 0x10) !== 0 ? (before + 1) & 15 : before)) errors++;
    last.set(pid, counter);
  }
  return errors;
}
