/** PAT and PMT of segments cut from a transport stream: one program, its own PIDs, the original descriptors. */
import { DESCRIPTOR, PAT_PID, STREAM_TYPE } from "./codes.ts";
import { crc32Mpeg } from "./crc.ts";
import { descriptorsOf, type ProgramMap, psiSection, sectionPackets } from "./psi.ts";
import { PACKET_BYTES } from "./packet.ts";

/** Types that mean DTS and TrueHD on discs, and something else to players that do not know that the stream is one's. */
const DISC_TYPES: ReadonlySet<number> = new Set([STREAM_TYPE.dts, STREAM_TYPE.trueHd]);
/** registration_descriptor of Blu-ray discs. */
const DISC_REGISTRATION = [DESCRIPTOR.registration, 4, ...new TextEncoder().encode("HDMV")];

/** Descriptors of the program: streams with a disc's types say that they are from one. */
function programLoop({ descriptors, streams }: ProgramMap, pids: readonly number[]): number[] {
  const isRegistered = [...descriptorsOf(descriptors)].some(({ tag }) => tag === DESCRIPTOR.registration);
  const needsIt = !isRegistered &&
    streams.some(({ pid, streamType }) => pids.includes(pid) && DISC_TYPES.has(streamType));
  return loop(descriptors, needsIt ? DISC_REGISTRATION : []);
}

function loop(descriptors: Uint8Array, first: readonly number[] = []): number[] {
  const kept: number[] = [...first];
  for (const { tag, body } of descriptorsOf(descriptors)) {
    if (tag !== DESCRIPTOR.conditionalAccess) kept.push(tag, body.length, ...body);
  }
  return [0xf0 | (kept.length >> 8), kept.length & 0xff, ...kept];
}

/** Version of tables that replace others: one that follows from what they say, so that players read them again. */
function versionOf(section: Uint8Array): number {
  return 1 + crc32Mpeg(section) % 31;
}

/** Makes the table packets of a program that carries `pids`, in that order; counters are given to each insertion. */
export class SegmentTables {
  #pat!: Uint8Array;
  #pmt!: Uint8Array;
  /** Insertions so far. */
  #count = 0;
  /** Packets of the PMT so far. */
  #pmtPackets = 0;

  constructor(map: ProgramMap, mapPid: number, pids: readonly number[]) {
    this.#make(map, mapPid, pids, false);
  }

  /** From the next insertion on the program is another one. */
  change(map: ProgramMap, mapPid: number, pids: readonly number[]): void {
    this.#make(map, mapPid, pids, true);
  }

  #make(map: ProgramMap, mapPid: number, pids: readonly number[], isOther: boolean): void {
    const { programNumber, pcrPid } = map;
    const pat = [programNumber >> 8, programNumber & 0xff, 0xe0 | (mapPid >> 8), mapPid & 0xff];
    const pmt = [0xe0 | (pcrPid >> 8), pcrPid & 0xff, ...programLoop(map, pids)];
    for (const pid of pids) {
      const stream = map.streams.find((candidate) => candidate.pid === pid);
      if (stream === undefined) continue;
      pmt.push(stream.streamType, 0xe0 | (pid >> 8), pid & 0xff, ...loop(stream.descriptors));
    }
    const packets = (tableId: number, id: number, body: readonly number[], pid: number) => {
      const section = psiSection(tableId, id, body);
      return sectionPackets(isOther ? psiSection(tableId, id, body, versionOf(section)) : section, pid);
    };
    this.#pat = packets(0x00, 1, pat, PAT_PID);
    this.#pmt = packets(0x02, programNumber, pmt, mapPid);
  }

  /** Another PAT and PMT. */
  next(): Uint8Array {
    const out = new Uint8Array(this.#pat.length + this.#pmt.length);
    out.set(this.#pat);
    out.set(this.#pmt, this.#pat.length);
    for (let at = 0; at < out.length; at += PACKET_BYTES) {
      const isPat = at < this.#pat.length;
      const counter = isPat ? this.#count : this.#pmtPackets++;
      out[at + 3] = (out[at + 3]! & 0xf0) | (counter & 15);
    }
    this.#count++;
    return out;
  }

  /** True when both counters stand where the next segment's begin. */
  get aligned(): boolean {
    return this.#count % 16 === 0;
  }
}
