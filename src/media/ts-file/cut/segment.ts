/**
 * Cuts an HLS segment out of a transport stream. The main stream is split at its random access points. Every other PID
 * begins with its first PES that starts at or after the cut, and ends with the PES that is open at the next cut, so
 * that segments together hold every PES once. Tables are our own, and every PID's counters begin at 0.
 */
import type { ChunkBuffers } from "../../../bytes/chunk-buffers.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import {
  FIELD_PCR,
  fieldBytes,
  hasPayload,
  isRandomAccess,
  PACKET_BYTES,
  payloadOf,
  pcrAt,
  pidOf,
  readPesHeader,
  startsUnit,
  SYNC_BYTE,
  unusable,
} from "../../../bytes/ts/packet.ts";
import { isBefore } from "../../../bytes/ts/stamps.ts";
import { type PacketFormat, readPackets } from "../../../bytes/ts/packet-source.ts";
import { ProgramFollower } from "../follow.ts";
import type { ChosenProgram } from "../programs.ts";
import type { Track } from "../../model/types.ts";
import { type CountedPacket, CounterRewriter } from "../../../bytes/ts/counters.ts";
import { PacketOutput } from "./packet-output.ts";
import { SegmentTables } from "../../../bytes/ts/program-tables.ts";

/** Where a segment begins. */
export interface SegmentStart {
  /** First packet of the main stream. */
  readonly packet: number;
  readonly program: ChosenProgram;
  /** The tracks of `program` that go into the segment. */
  readonly output: readonly Track[];
}

/** Where a segment lies, in packet numbers. */
export interface SegmentPlace {
  /** The file's first segment: other PIDs than the main one are taken from the file's beginning. */
  readonly first: boolean;
  /** The end is not before this packet. */
  readonly searchEnd: number;
  /** PES of other PIDs that begin earlier than this, 90 kHz, are left out. Default null: none. */
  readonly leastPts90k?: number | null;
  /** Called with the marked random access points of the main stream in it, in order. */
  accessPoint?(point: { readonly packet: number; readonly pts90k: number }): void;
  /** Called where the program's map names other streams: the tracks that go on. Absent: the program stays. */
  outputOf?(program: ChosenProgram): readonly Track[];
  start(): Promise<SegmentStart>;
  /** First packet of the main stream in the next segment. */
  end(): Promise<number>;
}

/** Packets read at first: with tables between them they still fit into one chunk, and a slow swarm brings them soon. */
const FIRST_READ_PACKETS = 340;
/** Packets read later on, 256 KiB: each read of a file on disk costs as much as making 64 KiB of the segment. */
const READ_PACKETS = 4 * FIRST_READ_PACKETS;
/** How far beyond the segment's end the ends of other PIDs' PES are followed, packets (about 2 MiB). */
const FOLLOW_PACKETS = 11_200;

/** One PID on its way into the segment. */
class Stream {
  readonly counters: CounterRewriter;
  state: "before" | "open" | "over" = "before";
  #left: number | null = 0;
  #sourceCounter = -1;

  constructor(emit: CountedPacket) {
    this.counters = new CounterRewriter(emit);
  }

  /** Whether the open PES still lacks bytes. */
  get unfinished(): boolean {
    return this.state === "open" && (this.#left === null || this.#left > 0);
  }

  /**
   * Keeps account of a packet that goes into the segment; false for a repeated one (2.4.3.3), which must not go into
   * it.
   */
  take(bytes: Uint8Array, at: number): boolean {
    if (!hasPayload(bytes, at)) return true;
    const counter = bytes[at + 3]! & 15;
    if (counter === this.#sourceCounter && !startsUnit(bytes, at)) return false;
    this.#sourceCounter = counter;
    if (startsUnit(bytes, at)) this.#left = readPesHeader(payloadOf(bytes, at))?.totalBytes ?? null;
    const payloadBytes = Math.max(0, PACKET_BYTES - 4 - fieldBytes(bytes, at));
    if (this.#left !== null) this.#left = Math.max(0, this.#left - payloadBytes);
    return true;
  }
}

/** A packet with nothing but the clock of the packet at `at`. */
function clockPacket(bytes: Uint8Array, at: number): Uint8Array {
  const packet = new Uint8Array(PACKET_BYTES).fill(0xff);
  packet.set([SYNC_BYTE, bytes[at + 1]! & 0x1f, bytes[at + 2]!, 0x2f, PACKET_BYTES - 5, FIELD_PCR]);
  packet.set(bytes.subarray(pcrAt(bytes, at), pcrAt(bytes, at) + PCR_BYTES), 6);
  return packet;
}

const PCR_BYTES = 6;

/** The segment's bytes, in chunks of `buffers` that the consumer releases; absent: in memory of their own. */
export async function* readTransportSegment(
  format: PacketFormat,
  place: SegmentPlace,
  source: ByteSource,
  signal: AbortSignal,
  buffers?: ChunkBuffers,
): AsyncGenerator<Uint8Array> {
  const { packet: start, program, output } = await place.start();
  const follower = place.outputOf === undefined ? null : new ProgramFollower(program);
  let mainPid = program.main.id;
  let { pcrPid } = program.map;
  const tables = new SegmentTables(program.map, program.mapPid, output.map((track) => track.id));
  const out = new PacketOutput(buffers);
  const emit: CountedPacket = (...packet) => out.add(...packet);
  const streams = new Map(output.map((track) => [track.id, new Stream(emit)]));
  const follow = (now: ChosenProgram) => {
    const tracks = place.outputOf!(now);
    mainPid = now.main.id;
    pcrPid = now.map.pcrPid;
    for (const { id } of tracks) if (!streams.has(id)) streams.set(id, new Stream(emit));
    tables.change(now.map, now.mapPid, tracks.map(({ id }) => id));
    out.addWhole(tables.next());
  };
  out.addWhole(tables.next());
  let end: number | null = null;
  const from = place.first ? 0 : start;
  let count = FIRST_READ_PACKETS;
  for (let packet = from; packet < format.packetCount; packet += count) {
    if (packet > from) count = READ_PACKETS;
    if (end === null && packet + count > place.searchEnd) end = await place.end();
    if (end !== null) count = Math.min(count, Math.max(FIRST_READ_PACKETS, end - packet));
    if (end !== null && packet >= end) {
      if (packet >= end + FOLLOW_PACKETS || ![...streams.values()].some((stream) => stream.unfinished)) break;
    }
    const bytes = await readPackets(format, source, packet, count, signal);
    for (let at = 0, number = packet; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES, number++) {
      const pid = pidOf(bytes, at);
      const inside = end === null || number < end;
      if (unusable(bytes, at)) {
        if (inside && number >= start && streams.has(pid)) format.onGap?.(format.firstAt + number * format.strideBytes);
        continue;
      }
      const stream = streams.get(pid);
      if (stream === undefined) {
        if (inside && follower?.push(bytes, at)) follow(follower.program);
        else if (pid === 0 && inside && number > start && startsUnit(bytes, at)) out.addWhole(tables.next());
        // A PID that carries only the clock has no payload, so its counter never moves.
        else if (pid === pcrPid && inside && number >= start && !hasPayload(bytes, at)) {
          out.add(bytes, at, 15);
        } else if (pid === pcrPid && inside && number >= start && !streams.has(mainPid) && pcrAt(bytes, at) >= 0) {
          // Sound apart from the pictures that have its clock.
          out.addWhole(clockPacket(bytes, at));
        }
        continue;
      }
      if (pid === mainPid) {
        if (number < start || !inside) continue;
        // A main stream that begins within the segment begins with a whole PES.
        if (stream.state === "open" || number === start || startsUnit(bytes, at)) stream.state = "open";
        if (startsUnit(bytes, at) && isRandomAccess(bytes, at)) {
          const pts90k = readPesHeader(payloadOf(bytes, at))?.pts90k ?? null;
          if (pts90k !== null) place.accessPoint?.({ packet: number, pts90k });
        }
      } else if (startsUnit(bytes, at)) {
        const isEarly = isBefore(readPesHeader(payloadOf(bytes, at))?.pts90k ?? null, place.leastPts90k ?? null);
        stream.state = !inside ? "over" : isEarly ? "before" : "open";
      }
      if (stream.state !== "open" || (!inside && !stream.unfinished)) continue;
      if (stream.take(bytes, at)) stream.counters.push(bytes, at);
    }
    if (end !== null && packet + count > end && streams.has(mainPid)) streams.get(mainPid)!.state = "over";
    out.settle();
    for (const stream of streams.values()) stream.counters.detach();
    source.release?.(bytes);
    yield* out.take();
  }
  for (const stream of streams.values()) stream.counters.finish();
  while (!tables.aligned) out.addWhole(tables.next());
  yield* out.take();
}
