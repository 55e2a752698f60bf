/** Follows the tables of a live transport stream and finds its random access points. */
import { PAT_PID, STREAM_TYPE } from "./codes.ts";
import { hasPayload, isRandomAccess, PACKET_BYTES, payloadOf, pidOf, startsUnit, unusable } from "./packet.ts";
import { type ProgramMap, readPat, readPmt, SectionAssembler } from "./psi.ts";
import { AccessPointFinder } from "./random-access.ts";

/** Stream types of video whose access units can be recognised. */
const VIDEO_TYPES: Readonly<Record<number, string>> = {
  [STREAM_TYPE.mpeg1Video]: "mpeg1video",
  [STREAM_TYPE.mpeg2Video]: "mpeg2video",
  [STREAM_TYPE.h264]: "h264",
  [STREAM_TYPE.hevc]: "hevc",
};
/** Most programs that are followed; multiplexes have about 20. */
const MAX_PROGRAMS = 32;
/** Most packets of one PAT or PMT that are kept: six hold the longest section. */
const MAX_TABLE_PACKETS = 8;

interface Table {
  readonly assembler: SectionAssembler;
  /** Packets of the section that is arriving. */
  arriving: Uint8Array[];
  /** Packets of the last whole section. */
  packets: Uint8Array[];
}

/** The findings in one packet. */
export interface PacketNews {
  /** Number, counted from the first packet pushed, of the packet where a random access point begins; else null. */
  readonly accessPoint: number | null;
  /** PID of the PAT or PMT that it belongs to; else null. */
  readonly tablePid: number | null;
}

/** Of most packets; nearly all of them come this way, so it is made once. */
const NO_NEWS: PacketNews = { accessPoint: null, tablePid: null };

/** Examines every packet of a stream in order. */
export class TsWatch {
  readonly #tables = new Map<number, Table>([[PAT_PID, newTable()]]);
  #mapPids: number[] = [];
  #finder: AccessPointFinder | null = null;
  #mainPid = -1;
  #isVideo = false;
  #count = 0;
  #map: ProgramMap | null = null;

  /** PID whose random access points count: the first video, else the first stream; -1 until a PMT came. */
  get mainStreamPid(): number {
    return this.#mainPid;
  }

  /** True when that stream is video: decoders can start only at some of its packets. */
  get hasVideo(): boolean {
    return this.#isVideo;
  }

  /** The program that is followed and the PID of its map; null until a PMT came. */
  get program(): { readonly map: ProgramMap; readonly mapPid: number } | null {
    return this.#map === null ? null : { map: this.#map, mapPid: this.#mapPids[0]! };
  }

  /** Number of PIDs that carry tables: the PAT's and those that it names. */
  get tableCount(): number {
    return this.#tables.size;
  }

  /** Examines the packet at `bytes[at]`. */
  push(bytes: Uint8Array, at: number): PacketNews {
    const packet = this.#count++;
    if (unusable(bytes, at)) return NO_NEWS;
    const pid = pidOf(bytes, at);
    const table = this.#tables.get(pid);
    if (table !== undefined) {
      this.#readTable(pid, table, bytes, at);
      return { accessPoint: null, tablePid: pid };
    }
    if (pid !== this.#mainPid || this.#finder === null) return NO_NEWS;
    const isStart = startsUnit(bytes, at) && isRandomAccess(bytes, at) && hasPayload(bytes, at);
    const found = this.#finder.push(bytes, at, packet);
    return { accessPoint: isStart ? packet : found?.packet ?? null, tablePid: null };
  }

  /** The last PAT and the PMTs that it names, as packets; empty until they came. */
  tablePackets(): Uint8Array[] {
    if (this.#mainPid < 0) return [];
    return [PAT_PID, ...this.#mapPids].flatMap((pid) => this.#tables.get(pid)?.packets ?? []);
  }

  #readTable(pid: number, table: Table, bytes: Uint8Array, at: number): void {
    if (startsUnit(bytes, at)) table.arriving = [];
    if (table.arriving.length < MAX_TABLE_PACKETS) table.arriving.push(bytes.slice(at, at + PACKET_BYTES));
    const sections = table.assembler.push(payloadOf(bytes, at), startsUnit(bytes, at));
    if (sections.length === 0) return;
    table.packets = table.arriving.slice();
    for (const section of sections) {
      if (pid === PAT_PID) this.#readPrograms(readPat(section));
      else {
        const map = readPmt(section);
        if (map !== null) this.#readMap(pid, map);
      }
    }
  }

  #readPrograms(programs: ReadonlyMap<number, number>): void {
    this.#mapPids = [...new Set(programs.values())].slice(0, MAX_PROGRAMS);
    for (const pid of [...this.#tables.keys()]) {
      if (pid !== PAT_PID && !this.#mapPids.includes(pid)) this.#tables.delete(pid);
    }
    for (const pid of this.#mapPids) if (!this.#tables.has(pid)) this.#tables.set(pid, newTable());
  }

  #readMap(mapPid: number, map: ProgramMap): void {
    // Only the first program counts. It is followed when its PMT changes the PIDs.
    if (mapPid !== this.#mapPids[0]) return;
    this.#map = map;
    const video = map.streams.find((stream) => VIDEO_TYPES[stream.streamType] !== undefined);
    const main = video ?? map.streams[0];
    if (main === undefined || (main.pid === this.#mainPid && this.#isVideo === (video !== undefined))) return;
    this.#mainPid = main.pid;
    this.#isVideo = video !== undefined;
    this.#finder = new AccessPointFinder(VIDEO_TYPES[main.streamType] ?? "other", !this.#isVideo);
  }
}

function newTable(): Table {
  return { assembler: new SectionAssembler(), arriving: [], packets: [] };
}
