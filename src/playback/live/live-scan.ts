/** Examines every packet of a broadcast once: where players can enter, and which program they find there. */
import {
  hasPayload,
  PACKET_BYTES,
  payloadOf,
  pcrAt,
  pidOf,
  readPesHeader,
  startsUnit,
  unusable,
} from "../../bytes/ts/packet.ts";
import type { ProgramMap } from "../../bytes/ts/psi.ts";
import { PcrSteps } from "../../bytes/ts/pcr-steps.ts";
import { readPcr, stepBetween } from "../../bytes/ts/stamps.ts";
import { TsWatch } from "../../bytes/ts/watch.ts";
import { type ChosenProgram, programOf } from "../../media/ts-file/programs.ts";

/** Media times further apart than this do not continue each other, 90 kHz: longer than any group of pictures. */
const JUMP_90K = 30 * 90_000;
/** Newest units of other streams that are remembered until the stream that leads has one: those of some seconds. */
const MAX_OTHERS = 1000;
/** A random access point. */
export interface LivePoint {
  /** Number of its first packet. */
  readonly packet: number;
  /** Number of its run: within a run, time and counters continue. */
  readonly run: number;
  /** 33-bit; null when its PES has no time. */
  readonly pts90k: number | null;
  /** The newest PAT and PMTs before it, as packets. */
  readonly tables: readonly Uint8Array[];
  readonly program: ChosenProgram;
}

/** Receives the findings, in the order of the packets. */
export interface ScanListener {
  /** A run ends before `packet`; the next begins there. `isWhole`: no access unit of the main stream is cut short. */
  runEnded(packet: number, isWhole: boolean): void;
  /** A packet came; `mainPts90k` is not null if the main stream begins an access unit there. */
  packet(pid: number, bytes: Uint8Array, at: number, number: number, mainPts90k: number | null): void;
  /** A random access point; its packets were reported before. */
  point(point: LivePoint): void;
}

/** Finds entry points and programs, and reports them to its listener. */
export class LiveScan {
  readonly #listener: ScanListener;
  readonly #watch = new TsWatch();
  #count = 0;
  /** PID of the stream that leads, as of the last packet. */
  #mainPid = -1;
  /** First packet of the newest access unit of the main stream in this run, which may continue; null without one. */
  unitStart: number | null = null;
  #run = 0;
  #runStart = 0;
  #lastPts90k: number | null = null;
  /** Times of the newest access units, by packet: a point may be known some packets after it began. */
  #units: { packet: number; pts90k: number | null }[] = [];
  /** Units of other streams since the last unit of the main stream. */
  #others: { pid: number; packet: number; pts90k: number | null }[] = [];
  readonly #steps = new PcrSteps();
  #known: { readonly key: string; readonly map: ProgramMap; readonly program: ChosenProgram } | null = null;

  constructor(listener: ScanListener) {
    this.#listener = listener;
  }

  /** The run that packets belong to now. */
  get currentRun(): number {
    return this.#run;
  }

  /** Takes whole packets. `discontinuity`: they do not continue those before. */
  push(bytes: Uint8Array, discontinuity: boolean): void {
    if (discontinuity && this.#count > 0) this.#endRun(this.#count, false);
    for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
      const number = this.#count++;
      const news = this.#watch.push(bytes, at);
      if (unusable(bytes, at)) continue;
      const pid = pidOf(bytes, at);
      const place = pcrAt(bytes, at);
      if (place >= 0 && pid === this.#watch.program?.map.pcrPid) this.#clock(pid, readPcr(bytes, place), number);
      if (this.#mainPid !== this.#watch.mainStreamPid) this.#leadChanged(number);
      const isMain = pid === this.#watch.mainStreamPid;
      const header = startsUnit(bytes, at) && hasPayload(bytes, at) ? readPesHeader(payloadOf(bytes, at)) : null;
      const pts90k = isMain ? header?.pts90k ?? null : null;
      if (header !== null && !isMain) this.#other(pid, number, header.pts90k);
      if (header !== null && isMain) this.#unit(number, pts90k);
      this.#listener.packet(pid, bytes, at, number, pts90k);
      if (news.accessPoint !== null && news.accessPoint >= this.#runStart) this.#access(news.accessPoint);
    }
  }

  /** The clock may have been set without a mark, as by a sender that knows none. */
  #clock(pid: number, pcr: number, packet: number): void {
    if (this.#steps.next(pid, pcr)?.isJump !== true) return;
    this.#endRun(packet, false);
    this.#steps.next(pid, pcr);
  }

  /**
   * Another stream leads from `packet` on. The units of the earlier one are no longer kept whole, and nothing waits for
   * them. Where only units of the new one came, players could have entered at those.
   */
  #leadChanged(packet: number): void {
    const pid = this.#watch.mainStreamPid;
    this.#mainPid = pid;
    this.#lastPts90k = null;
    if (this.unitStart !== null) this.unitStart = packet;
    this.#units = [];
    const isVideo = this.#watch.hasVideo;
    const earlier = isVideo ? [] : this.#others.filter((unit) => unit.pid === pid && unit.packet < packet);
    this.#others = [];
    for (const unit of earlier) {
      this.#units = [unit];
      this.#access(unit.packet);
    }
  }

  #other(pid: number, packet: number, pts90k: number | null): void {
    this.#others.push({ pid, packet, pts90k });
    if (this.#others.length > MAX_OTHERS) this.#others.splice(0, MAX_OTHERS / 2);
  }

  #unit(packet: number, pts90k: number | null): void {
    this.#others = [];
    this.#units.push({ packet, pts90k });
    if (this.#units.length > 4) this.#units.shift();
    if (pts90k !== null) {
      // Unmarked, as where a file begins again: the following packets are another run.
      const isJump = this.#lastPts90k !== null && Math.abs(stepBetween(this.#lastPts90k, pts90k)) > JUMP_90K;
      if (isJump) this.#endRun(packet, true);
      this.#lastPts90k = pts90k;
    }
    this.unitStart = packet;
  }

  #endRun(packet: number, isWhole: boolean): void {
    this.#run++;
    this.#runStart = packet;
    this.#lastPts90k = null;
    this.#others = [];
    this.#steps.cut();
    this.#listener.runEnded(packet, isWhole);
    this.unitStart = null;
  }

  #access(packet: number): void {
    const found = this.#watch.program;
    if (found === null) return;
    const pts90k = this.#units.find((unit) => unit.packet === packet)?.pts90k ?? null;
    const program = this.#programFrom(found.map, found.mapPid);
    this.#listener.point({ packet, run: this.#run, pts90k, tables: this.#watch.tablePackets(), program });
  }

  /** The same object as long as the program and its lead are, and the same map as long as the program is. */
  #programFrom(map: ProgramMap, mapPid: number): ChosenProgram {
    const streams = map.streams.map(({ pid, streamType }) => `${pid}:${streamType}`);
    const key = [map.programNumber, map.pcrPid, mapPid, ...streams].join();
    const mainPid = this.#watch.mainStreamPid;
    if (this.#known?.key !== key) this.#known = { key, map, program: programOf(map, mapPid, mainPid) };
    else if (this.#known.program.main.id !== mainPid) {
      this.#known = { ...this.#known, program: programOf(this.#known.map, mapPid, mainPid) };
    }
    return this.#known.program;
  }
}
