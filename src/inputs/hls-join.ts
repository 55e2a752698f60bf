/** Packets of two transport streams of one program: tables that name the streams of both, and sound cut into its units. */
import { concatBytes } from "../bytes/hex.ts";
import { PAT_PID } from "../bytes/ts/codes.ts";
import {
  FIELD_RANDOM_ACCESS,
  fieldBytes,
  hasPayload,
  PACKET_BYTES,
  payloadOf,
  pidOf,
  readPesHeader,
  startsUnit,
  unusable,
} from "../bytes/ts/packet.ts";
import { SegmentTables } from "../bytes/ts/program-tables.ts";
import { type MapStream, type ProgramMap, readPat, readPmt, SectionAssembler } from "../bytes/ts/psi.ts";
import { readStamp } from "../bytes/ts/stamps.ts";
import { codecOf, isVideoCodec } from "../bytes/ts/stream-codec.ts";

/** The sound gets the first PID from here on that the pictures do not use. */
const FIRST_SOUND_PID = 0x1e00;
/** Largest unit of sound, bytes: those with a length have less than 64 KiB. */
const MAX_UNIT_BYTES = 256 * 1024;

/** Follows the tables of a stream: the first program that it names. */
class TableReader {
  #pat = new SectionAssembler();
  #pmt = new SectionAssembler();
  #programNumber = 0;
  mapPid: number | null = null;
  map: ProgramMap | null = null;

  /** Takes a packet; returns whether it is one of a table, and whether that completes a map. */
  take(packet: Uint8Array): { readonly isTable: boolean; readonly isMap: boolean } {
    const pid = pidOf(packet, 0);
    if (pid === PAT_PID) {
      for (const section of this.#pat.push(payloadOf(packet, 0), startsUnit(packet, 0))) {
        const [program] = readPat(section);
        if (program === undefined || program[1] === this.mapPid) continue;
        [this.#programNumber, this.mapPid] = program;
        this.#pmt = new SectionAssembler();
      }
      return { isTable: true, isMap: false };
    }
    if (pid !== this.mapPid) return { isTable: false, isMap: false };
    let isMap = false;
    for (const section of this.#pmt.push(payloadOf(packet, 0), startsUnit(packet, 0))) {
      const map = readPmt(section);
      if (map?.programNumber !== this.#programNumber) continue;
      this.map = map;
      isMap = true;
    }
    return { isTable: true, isMap };
  }
}

/** What a packet of the pictures needs: to pass, or to be left out, or tables in its place, or the sound before its time. */
export type PictureStep = "pass" | "drop" | "tables" | { readonly dts90k: number };

/** The tables of the pictures, which get the sound besides. */
export class PictureTables {
  #reader = new TableReader();
  #tables: SegmentTables | null = null;
  /** What the present tables were made of. */
  #madeOf = "";
  soundPid = FIRST_SOUND_PID;

  /** Takes the next packet. */
  step(packet: Uint8Array): PictureStep {
    if (unusable(packet, 0)) return "pass";
    const { isTable, isMap } = this.#reader.take(packet);
    if (isTable) return isMap ? "tables" : "drop";
    const { map } = this.#reader;
    if (map === null || !startsUnit(packet, 0) || pidOf(packet, 0) !== mainPid(map)) return "pass";
    const payload = payloadOf(packet, 0);
    const pts90k = readPesHeader(payload)?.pts90k ?? null;
    if (pts90k === null) return "pass";
    const hasDts = (payload[7]! & 0x40) !== 0 && payload.length >= 19;
    return { dts90k: hasDts ? readStamp(payload, 14) : pts90k };
  }

  /** PAT and PMT of the pictures with `sound`; null: without. After a step of `tables`. */
  packets(sound: MapStream | null): Uint8Array {
    const map = this.#reader.map!;
    const mapPid = this.#reader.mapPid!;
    const used = new Set([map.pcrPid, mapPid, ...map.streams.map(({ pid }) => pid)]);
    while (used.has(this.soundPid)) this.soundPid++;
    const others = (isVideo: boolean) => map.streams.filter((stream) => isVideoStream(stream, map) === isVideo);
    const streams = [...others(true), ...(sound === null ? [] : [{ ...sound, pid: this.soundPid }]), ...others(false)];
    const pids = streams.map(({ pid }) => pid);
    const madeOf = JSON.stringify([
      mapPid,
      map.pcrPid,
      streams.map((one) => [one.pid, one.streamType, ...one.descriptors]),
    ]);
    if (this.#tables === null) this.#tables = new SegmentTables({ ...map, streams }, mapPid, pids);
    else if (madeOf !== this.#madeOf) this.#tables.change({ ...map, streams }, mapPid, pids);
    this.#madeOf = madeOf;
    return this.#tables.next();
  }
}

function isVideoStream(stream: MapStream, { descriptors }: ProgramMap): boolean {
  const codec = codecOf(stream, descriptors);
  return codec !== null && isVideoCodec(codec);
}

/** The stream by whose times the sound is put in: pictures, or whatever there is. */
function mainPid(map: ProgramMap): number {
  return (map.streams.find((stream) => isVideoStream(stream, map)) ?? map.streams[0])?.pid ?? map.pcrPid;
}

/** A PES packet of sound. */
export interface SoundUnit {
  /** What the map says of its stream. */
  readonly stream: MapStream;
  readonly pts90k: number;
  /** The packets do not continue what came before. */
  readonly isCut: boolean;
  /** Its transport packets, without a clock. */
  readonly packets: Uint8Array;
}

interface OpenUnit {
  readonly pts90k: number;
  readonly isCut: boolean;
  readonly parts: Uint8Array[];
  /** Bytes that are still to come; null: it ends where the next one begins. */
  leftBytes: number | null;
}

/** Cuts the first sound of a transport stream into its PES packets. */
export class SoundUnits {
  #reader = new TableReader();
  #open: OpenUnit | null = null;
  #isCut = false;

  /** What comes next does not continue what came before. */
  cut(): void {
    this.#open = null;
    this.#isCut = true;
  }

  /** Takes whole packets; returns the units that are complete. */
  push(bytes: Uint8Array): SoundUnit[] {
    const units: SoundUnit[] = [];
    for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
      const packet = bytes.subarray(at, at + PACKET_BYTES);
      if (!unusable(packet, 0) && !this.#reader.take(packet).isTable) this.#take(packet, units);
    }
    return units;
  }

  #take(packet: Uint8Array, units: SoundUnit[]): void {
    const { map } = this.#reader;
    const stream = map?.streams.find((one) => codecOf(one, map.descriptors) !== null && !isVideoStream(one, map));
    if (stream === undefined || pidOf(packet, 0) !== stream.pid || !hasPayload(packet, 0)) return;
    const payload = payloadOf(packet, 0);
    if (startsUnit(packet, 0)) {
      this.#close(stream, units);
      const header = readPesHeader(payload);
      if (header === null || header.pts90k === null) return;
      this.#open = { pts90k: header.pts90k, isCut: this.#isCut, parts: [], leftBytes: header.totalBytes };
    }
    const open = this.#open;
    if (open === null) return;
    open.parts.push(withoutClock(packet));
    if (open.leftBytes !== null) open.leftBytes -= payload.length;
    if (open.leftBytes !== null && open.leftBytes <= 0) this.#close(stream, units);
    else if (open.parts.length * PACKET_BYTES > MAX_UNIT_BYTES) this.#open = null;
  }

  #close(stream: MapStream, units: SoundUnit[]): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    const { pts90k, isCut, parts } = open;
    units.push({ stream, pts90k, isCut, packets: concatBytes(parts) });
    this.#isCut = false;
  }
}

/** A copy of a packet whose adaptation field has nothing but the mark of a random access point: the clock is the pictures'. */
function withoutClock(packet: Uint8Array): Uint8Array {
  const copy = packet.slice();
  const field = fieldBytes(copy, 0);
  if (field > 1) {
    copy[5] = copy[5]! & FIELD_RANDOM_ACCESS;
    copy.fill(0xff, 6, Math.min(4 + field, PACKET_BYTES));
  }
  return copy;
}

/** Puts `packets` under `pid`, in place; returns them. */
export function underPid(packets: Uint8Array, pid: number): Uint8Array {
  for (let at = 0; at < packets.length; at += PACKET_BYTES) {
    packets[at + 1] = (packets[at + 1]! & 0xe0) | (pid >> 8);
    packets[at + 2] = pid & 0xff;
  }
  return packets;
}
