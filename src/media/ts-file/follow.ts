/**
 * Follows the tables of a program through a file: a recording may change its PIDs and codecs, or have another sound only
 * for a while.
 */
import { PAT_PID } from "../../bytes/ts/codes.ts";
import { payloadOf, pidOf, startsUnit, unusable } from "../../bytes/ts/packet.ts";
import { type ProgramMap, readPat, readPmt, SectionAssembler } from "../../bytes/ts/psi.ts";
import { type ChosenProgram, programFrom } from "./programs.ts";

/** Whether both maps name the same streams of the same types. Descriptors may differ: they change with what is on. */
function namesSame(a: ProgramMap, b: ProgramMap): boolean {
  return a.pcrPid === b.pcrPid && a.streams.length === b.streams.length &&
    a.streams.every(({ pid, streamType }, i) => pid === b.streams[i]!.pid && streamType === b.streams[i]!.streamType);
}

/** Whether segments of both hold the same streams in the same codecs. */
export function hasSameTracks(a: ChosenProgram, b: ChosenProgram): boolean {
  const played = ({ tracks }: ChosenProgram) => tracks.filter(({ kind }) => kind === "video" || kind === "audio");
  const others = played(b);
  return played(a).length === others.length &&
    played(a).every(({ id, codec }) => others.some((track) => track.id === id && track.codec === codec));
}

/** The program as the tables pushed so far describe it. */
export class ProgramFollower {
  #program: ChosenProgram;
  #hasSeenMap = false;
  readonly #pat = new SectionAssembler();
  #pmt = new SectionAssembler();
  #mapPid: number;

  /** `program`: what is assumed until its map comes. */
  constructor(program: ChosenProgram) {
    this.#program = program;
    this.#mapPid = program.mapPid;
  }

  /** The program now. */
  get program(): ChosenProgram {
    return this.#program;
  }

  /** A map of the program was pushed. */
  get hasSeenMap(): boolean {
    return this.#hasSeenMap;
  }

  /** Examines the packet at `at`; true if `program` is another one afterwards. */
  push(bytes: Uint8Array, at: number): boolean {
    const pid = pidOf(bytes, at);
    if ((pid !== PAT_PID && pid !== this.#mapPid) || unusable(bytes, at)) return false;
    let isChanged = false;
    const isPat = pid === PAT_PID;
    for (const section of (isPat ? this.#pat : this.#pmt).push(payloadOf(bytes, at), startsUnit(bytes, at))) {
      if (isPat) this.#followPat(readPat(section));
      else if (this.#takeMap(readPmt(section))) isChanged = true;
    }
    return isChanged;
  }

  #followPat(programs: ReadonlyMap<number, number>): void {
    const [first] = programs.values();
    const mapPid = programs.get(this.#program.map.programNumber) ?? first;
    if (mapPid === undefined || mapPid === this.#mapPid) return;
    this.#mapPid = mapPid;
    this.#pmt = new SectionAssembler();
  }

  #takeMap(map: ProgramMap | null): boolean {
    if (map === null) return false;
    const { map: known, mapPid } = this.#program;
    // Maps of several programs may share a PID.
    if (mapPid === this.#mapPid && map.programNumber !== known.programNumber) return false;
    this.#hasSeenMap = true;
    if (mapPid === this.#mapPid && namesSame(known, map)) return false;
    const next = programFrom(map, this.#mapPid);
    if (next === null) return false;
    this.#program = next;
    return true;
  }
}
