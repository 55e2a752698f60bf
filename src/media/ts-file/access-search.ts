/** Searches the random access point that a segment begins with. */
import type { ByteSource } from "../../bytes/source.ts";
import { PAT_PID } from "../../bytes/ts/codes.ts";
import { PACKET_BYTES, pidOf, startsUnit, unusable } from "../../bytes/ts/packet.ts";
import { type PacketFormat, readPackets } from "../../bytes/ts/packet-source.ts";
import { AccessPointFinder, type PointRule } from "../../bytes/ts/random-access.ts";
import { hasSameTracks, ProgramFollower } from "./follow.ts";
import type { ChosenProgram } from "./programs.ts";

/** Packets read at a time (about 128 KiB). */
const STEP_PACKETS = 700;
/** How far to search, packets (about 16 MiB): beyond it any access unit has to do. */
const SEARCH_PACKETS = 89_000;

/** Steps in which the program's map is looked for first (about 0.5 MiB): it comes ten times per second, or each second. */
const MAP_STEPS = 4;

/** Where a segment begins. */
export interface FoundPoint {
  /** First packet of the main stream. */
  readonly packet: number;
  /** The program there. */
  readonly program: ChosenProgram;
}

/** Finds the main stream's random access points in the order of packets, as its program changes. */
export class MainFinder {
  readonly #rule: PointRule;
  readonly #follower: ProgramFollower;
  #finder: AccessPointFinder;

  /** `rule`: for video; every PES of sound is an access point. */
  constructor(program: ChosenProgram, rule: PointRule) {
    this.#rule = rule;
    this.#follower = new ProgramFollower(program);
    this.#finder = this.#finderOf(program);
  }

  /** The program now. */
  get program(): ChosenProgram {
    return this.#follower.program;
  }

  /** A map of the program was pushed. */
  get hasSeenMap(): boolean {
    return this.#follower.hasSeenMap;
  }

  /**
   * Packets of other PIDs than the main stream's may be tables. True if the program has other tracks from here on; the first
   * map that is pushed only shows what was there before.
   */
  pushOther(bytes: Uint8Array, at: number): boolean {
    const { program: before, hasSeenMap } = this;
    if (!this.#follower.push(bytes, at)) return false;
    const { id, codec } = this.program.main;
    if (id !== before.main.id || codec !== before.main.codec) this.#finder = this.#finderOf(this.program);
    return hasSeenMap && !hasSameTracks(before, this.program);
  }

  /** As `AccessPointFinder.push`, for a packet of the main stream. */
  pushMain(bytes: Uint8Array, at: number, packet: number): ReturnType<AccessPointFinder["push"]> {
    return this.#finder.push(bytes, at, packet);
  }

  #finderOf({ main }: ChosenProgram): AccessPointFinder {
    return new AccessPointFinder(main.codec, main.kind === "video" ? this.#rule : "any", true);
  }
}

/**
 * The first random access point at or after `from`; if there is none within 16 MiB, the first PES of the main stream; if
 * there is none at all, the end of the file. `program` is assumed where no map comes. Depends only on the file.
 */
export async function findAccessPoint(
  format: PacketFormat,
  source: ByteSource,
  program: ChosenProgram,
  from: number,
  rule: PointRule,
  signal: AbortSignal,
): Promise<FoundPoint> {
  const end = Math.min(format.packetCount, from + SEARCH_PACKETS);
  const read = (first: number) => readPackets(format, source, first, Math.min(STEP_PACKETS, end - first), signal);
  // The next map describes the packets before it, too: it may come just after the random access point.
  const ahead: Uint8Array[] = [];
  const first = new ProgramFollower(program);
  for (let step = 0; step < MAP_STEPS && !first.hasSeenMap && from + step * STEP_PACKETS < end; step++) {
    const bytes = await read(from + step * STEP_PACKETS);
    for (let at = 0; at < bytes.length && !first.hasSeenMap; at += PACKET_BYTES) first.push(bytes, at);
    ahead.push(bytes);
  }
  const finder = new MainFinder(first.program, rule);
  let firstUnit = format.packetCount;
  for (let start = from; start < end; start += STEP_PACKETS) {
    const bytes = ahead.shift() ?? await read(start);
    for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
      if (pidOf(bytes, at) !== finder.program.main.id) {
        finder.pushOther(bytes, at);
        continue;
      }
      if (unusable(bytes, at)) continue;
      const packet = start + at / PACKET_BYTES;
      if (startsUnit(bytes, at)) firstUnit = Math.min(firstUnit, packet);
      const point = finder.pushMain(bytes, at, packet);
      if (point !== null) return { packet: point.packet, program: finder.program };
    }
  }
  // At the very end of the file a group without its start belongs to the previous segment.
  const packet = end === format.packetCount && from > 0 ? format.packetCount : firstUnit;
  return { packet, program: finder.program };
}

/** How far back to search for tables, packets (about 1 MiB): the standards require them ten times per second. */
const TABLES_PACKETS = 5600;

/**
 * Number of the packet with the last PAT before the last PMT (on `mapPid`) before `packet`: a player that begins there
 * knows the streams when that packet comes. `packet` itself if there are none within 1 MiB.
 */
export async function tablesBefore(
  format: PacketFormat,
  source: ByteSource,
  mapPid: number,
  packet: number,
  signal: AbortSignal,
): Promise<number> {
  let wanted = mapPid;
  for (let end = packet; end > Math.max(0, packet - TABLES_PACKETS);) {
    const first = Math.max(0, end - STEP_PACKETS);
    const bytes = await readPackets(format, source, first, end - first, signal);
    for (let at = bytes.length - PACKET_BYTES; at >= 0; at -= PACKET_BYTES) {
      if (pidOf(bytes, at) !== wanted || unusable(bytes, at) || !startsUnit(bytes, at)) continue;
      if (wanted === PAT_PID) return first + at / PACKET_BYTES;
      wanted = PAT_PID;
    }
    end = first;
  }
  return packet;
}
