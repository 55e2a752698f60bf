/** Finds the sound that becomes AAC in a stretch of a transport stream: the program's maps there say which PIDs it has, in which codec. */
import type { ByteSource } from "../../../bytes/source.ts";
import { PACKET_BYTES, payloadOf, pidOf, startsUnit, unusable } from "../../../bytes/ts/packet.ts";
import { type PacketFormat, readPackets } from "../../../bytes/ts/packet-source.ts";
import { type ProgramMap, readPmt, SectionAssembler } from "../../../bytes/ts/psi.ts";
import { trackOf } from "../stream-types.ts";
import type { Track } from "../../model/types.ts";
import type { SoundOf } from "./job-input.ts";
import { type AudioStretch, StretchCollector } from "./window.ts";

/** What to look for. */
export interface SoundSearch {
  /** The first map of the program in the file, and the PID of its maps. */
  readonly map: ProgramMap;
  readonly mapPid: number;
  /** Whether the sound of a track becomes AAC. */
  readonly becomesAac: (track: Track) => boolean;
  /** Origin of all times, 33 bits: the earliest time of the file, if its clock is in order. */
  readonly origin90k: number;
}

/** Packets `[from, to)` of a PID, by their numbers in the file. */
export interface PidStretch {
  readonly pid: number;
  readonly from: number;
  readonly to: number;
}

/** One sound for as long as the maps name it in the same codec. */
export interface SoundStretch extends Omit<PidStretch, "pid"> {
  readonly sound: SoundOf;
  readonly stretch: AudioStretch;
}

/** Packets read at a time, about 256 KiB. */
const READ_PACKETS = 1392;

/** A sound that is being collected. */
interface Open {
  readonly sound: SoundOf;
  readonly codec: string;
  readonly from: number;
  readonly collector: StretchCollector;
}

/** The maps of one program, as packets come. */
class Maps {
  readonly #mapPid: number;
  readonly #programNumber: number;
  readonly #assembler = new SectionAssembler();

  constructor({ map, mapPid }: SoundSearch) {
    this.#mapPid = mapPid;
    this.#programNumber = map.programNumber;
  }

  /** The newest map that the packet at `at` completes; null if it completes none. */
  push(bytes: Uint8Array, at: number): ProgramMap | null {
    if (pidOf(bytes, at) !== this.#mapPid || unusable(bytes, at)) return null;
    let newest: ProgramMap | null = null;
    for (const section of this.#assembler.push(payloadOf(bytes, at), startsUnit(bytes, at))) {
      const map = readPmt(section);
      if (map?.programNumber === this.#programNumber) newest = map;
    }
    return newest;
  }
}

/** The sounds in the packets `[from, to)` of the file, in the order in which they begin. Depends on nothing but the file. */
export async function findSounds(
  search: SoundSearch,
  format: PacketFormat,
  source: ByteSource,
  [from, to]: readonly [from: number, to: number],
  signal: AbortSignal,
): Promise<SoundStretch[]> {
  const { mapPid, becomesAac, origin90k } = search;
  const open = new Map<number, Open>();
  const found: SoundStretch[] = [];
  const close = (pid: number, end: number) => {
    const { sound, from, collector } = open.get(pid)!;
    open.delete(pid);
    found.push({ sound, from, to: end, stretch: collector.finish() });
  };
  const follow = (map: ProgramMap, packet: number) => {
    const sounds = new Map(map.streams.flatMap((stream) => {
      const track = trackOf(stream, map.descriptors, false);
      return becomesAac(track) ? [[stream.pid, `${stream.streamType} ${track.codec}`]] : [];
    }));
    for (const [pid, { codec }] of open) if (sounds.get(pid) !== codec) close(pid, packet);
    for (const [pid, codec] of sounds) {
      if (open.has(pid)) continue;
      open.set(pid, { sound: { map, mapPid, pid }, codec, from: packet, collector: new StretchCollector(origin90k) });
    }
  };
  // The next map describes the packets before it, too.
  follow(await nextMap(search, format, source, [from, to], signal) ?? search.map, from);
  const maps = new Maps(search);
  for (let first = from; first < to; first += READ_PACKETS) {
    const bytes = await readPackets(format, source, first, Math.min(READ_PACKETS, to - first), signal);
    for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
      const number = first + at / PACKET_BYTES;
      const sound = open.get(pidOf(bytes, at));
      if (sound !== undefined && !unusable(bytes, at)) sound.collector.push(bytes, at, number);
      const map = maps.push(bytes, at);
      if (map !== null) follow(map, number);
    }
    source.release?.(bytes);
  }
  for (const pid of [...open.keys()]) close(pid, to);
  return found;
}

/** The first map in the packets `[from, to)`; null if there is none. */
async function nextMap(
  search: SoundSearch,
  format: PacketFormat,
  source: ByteSource,
  [from, to]: readonly [from: number, to: number],
  signal: AbortSignal,
): Promise<ProgramMap | null> {
  const maps = new Maps(search);
  for (let first = from; first < to; first += READ_PACKETS) {
    const bytes = await readPackets(format, source, first, Math.min(READ_PACKETS, to - first), signal);
    for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
      const map = maps.push(bytes, at);
      if (map === null) continue;
      source.release?.(bytes);
      return map;
    }
    source.release?.(bytes);
  }
  return null;
}
