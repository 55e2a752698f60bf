/** Follows the tables of a live transport stream and finds its random access points. */
import { PAT_PID } from "./codes.ts";
import { LeadStream } from "./lead-stream.ts";
import {
  hasPayload,
  isRandomAccess,
  PACKET_BYTES,
  payloadOf,
  pidOf,
  readPesHeader,
  startsUnit,
  unusable,
} from "./packet.ts";
import { type ProgramMap, readPat, readPmt, SectionAssembler } from "./psi.ts";
import { AccessPointFinder } from "./random-access.ts";

/** Most programs that are followed; multiplexes have about 20. */
const MAX_PROGRAMS = 32;
/** Most packets of one PAT or PMT that are kept: six hold the longest section. */
const MAX_TABLE_PACKETS = 8;

interface Table {
  readonly assembler: SectionAssembler;
  /** Packets of the section that is arriving. */
  arriving: Uint8Array[];
  /** Packets of the last whole section, by the program that it describes; 0 for the PAT. */
  readonly packets: Map<number, Uint8Array[]>;
  /** Maps of several programs come on this PID, whether the PAT names them or not. */
  isShared: boolean;
}

/** A program that the PAT names. */
interface Program {
  readonly number: number;
  readonly mapPid: number;
  /** null until it came. */
  map: ProgramMap | null;
}

/** The findings in one packet. */
export interface PacketNews {
  /** Number, counted from the first packet pushed, of the packet where a random access point begins; else null. */
  readonly accessPoint: number | null;
  /** PID of the PAT or PMT that it belongs to; else null. Where programs share a PID, only for the map that is followed. */
  readonly tablePid: number | null;
}

/** Of most packets; nearly all of them come this way, so it is made once. */
const NO_NEWS: PacketNews = { accessPoint: null, tablePid: null };

/** Examines every packet of a stream in order. */
export class TsWatch {
  readonly #tables = new Map<number, Table>([[PAT_PID, newTable()]]);
  /** In the order of the PAT. */
  #programs: Program[] = [];
  #followed: Program | null = null;
  /** What the followed map says about streams, to notice when it changes. */
  #streamsKey = "";
  #lead = new LeadStream({ streams: [], descriptors: new Uint8Array() });
  #finder: AccessPointFinder | null = null;
  #mainPid = -1;
  #isVideo = false;
  #count = 0;

  /** PID whose random access points count: the stream that leads; -1 until a PMT came. */
  get mainStreamPid(): number {
    return this.#mainPid;
  }

  /** True when that stream is video: decoders can start only at some of its packets. */
  get hasVideo(): boolean {
    return this.#isVideo;
  }

  /** The program that is followed and the PID of its map; null until a PMT came. */
  get program(): { readonly map: ProgramMap; readonly mapPid: number } | null {
    const { map = null, mapPid = -1 } = this.#followed ?? {};
    return map === null ? null : { map, mapPid };
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
      const isFollowed = this.#readTable(pid, table, bytes, at);
      return { accessPoint: null, tablePid: isFollowed ? pid : null };
    }
    if (startsUnit(bytes, at) && hasPayload(bytes, at) && this.#lead.has(pid)) {
      const header = readPesHeader(payloadOf(bytes, at));
      if (header !== null && this.#lead.unit(pid, header.pts90k)) this.#follow();
    }
    if (pid !== this.#mainPid || this.#finder === null) return NO_NEWS;
    const isStart = startsUnit(bytes, at) && isRandomAccess(bytes, at) && hasPayload(bytes, at);
    const found = this.#finder.push(bytes, at, packet);
    return { accessPoint: isStart ? packet : found?.packet ?? null, tablePid: null };
  }

  /** The last PAT and the PMTs that it names, as packets; empty until they came. */
  tablePackets(): Uint8Array[] {
    if (this.#mainPid < 0) return [];
    // Sections may share a packet.
    return [...new Set([...this.#tables.values()].flatMap(({ packets }) => [...packets.values()].flat()))];
  }

  /** Returns whether the packet belongs to the PAT or, where programs share its PID, completes the map that is followed. */
  #readTable(pid: number, table: Table, bytes: Uint8Array, at: number): boolean {
    if (startsUnit(bytes, at)) table.arriving = [];
    if (table.arriving.length < MAX_TABLE_PACKETS) table.arriving.push(bytes.slice(at, at + PACKET_BYTES));
    let hasFollowed = false;
    for (const section of table.assembler.push(payloadOf(bytes, at), startsUnit(bytes, at))) {
      if (pid === PAT_PID) {
        table.packets.set(0, table.arriving.slice());
        this.#readPrograms(readPat(section));
        continue;
      }
      const map = readPmt(section);
      if (map === null) continue;
      const program = this.#programs.find(({ number, mapPid }) => number === map.programNumber && mapPid === pid);
      if (program === undefined || table.packets.size > (table.packets.has(program.number) ? 1 : 0)) {
        table.isShared = true;
      }
      if (program === undefined) continue;
      table.packets.set(program.number, table.arriving.slice());
      program.map = map;
      hasFollowed ||= program === this.#followed;
      this.#choose();
    }
    return hasFollowed || !table.isShared;
  }

  #readPrograms(programs: ReadonlyMap<number, number>): void {
    const before = this.#programs;
    const named = [...programs].slice(0, MAX_PROGRAMS);
    this.#programs = named.map(([number, mapPid]) =>
      before.find((old) => old.number === number && old.mapPid === mapPid) ?? { number, mapPid, map: null }
    );
    for (const [pid, { packets }] of this.#tables) {
      if (pid === PAT_PID) continue;
      for (const number of [...packets.keys()]) if (programs.get(number) !== pid) packets.delete(number);
      if (!this.#programs.some(({ mapPid }) => mapPid === pid)) this.#tables.delete(pid);
    }
    for (const { mapPid } of this.#programs) if (!this.#tables.has(mapPid)) this.#tables.set(mapPid, newTable());
    this.#choose();
  }

  /** Only one program counts: the first that has streams. It is followed when its PMT changes them. */
  #choose(): void {
    const program = this.#programs.find(({ map }) => map !== null && map.streams.length > 0);
    if (program === undefined) return;
    this.#followed = program;
    const { streams } = program.map!;
    const key = [program.number, ...streams.map(({ pid, streamType }) => `${pid}:${streamType}`)].join();
    if (key === this.#streamsKey) return;
    this.#streamsKey = key;
    this.#lead = new LeadStream(program.map!);
    this.#follow();
  }

  #follow(): void {
    const lead = this.#lead.lead!;
    this.#mainPid = lead.pid;
    this.#isVideo = lead.isVideo;
    this.#finder = new AccessPointFinder(lead.codec ?? "other", lead.isVideo ? "start" : "any");
  }
}

function newTable(): Table {
  return { assembler: new SectionAssembler(), arriving: [], packets: new Map(), isShared: false };
}
