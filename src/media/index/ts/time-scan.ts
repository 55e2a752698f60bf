/**
 * Scans a stretch of a transport stream for random access points and times of its main stream, and for breaks of the
 * clock.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { PACKET_BYTES, payloadOf, pidOf, readPesHeader, startsUnit, unusable } from "../../../bytes/ts/packet.ts";
import type { AccessPoint } from "../../../bytes/ts/random-access.ts";
import { stepBetween } from "../../../bytes/ts/stamps.ts";
import { type PacketFormat, readPackets } from "../../../bytes/ts/packet-source.ts";
import { MainFinder } from "./access-search.ts";
import type { ChosenProgram } from "./programs.ts";

/** A PES with its time. */
export interface Mark {
  /** Number of its first packet. */
  readonly packet: number;
  /** 33 bits. */
  readonly pts90k: number;
}

/** Where the clock breaks. */
export interface ClockBreak {
  /** The latest time before it. */
  readonly before: Mark;
  /** The first PES after it. */
  readonly after: Mark;
}

/** What was found in a stretch. */
export interface Scan {
  readonly points: readonly AccessPoint[];
  readonly first: Mark | null;
  /** The latest time after the last break. */
  readonly last: Mark | null;
  readonly breaks: readonly ClockBreak[];
}

/** Packets read at a time, about 128 KiB: enough for a search, and a slow swarm delivers it in a few seconds. */
const STEP_PACKETS = 700;
/** Pictures are not in the order of their times; a step back beyond this is a break, 90 kHz (2 s). */
const MAX_BACK_90K = 180_000;
/** A step ahead beyond this from one PES to the next is a break, 90 kHz (10 s). */
const MAX_AHEAD_90K = 900_000;
/** Most breaks reported for one stretch; a file with more is damaged throughout. */
const MAX_BREAKS = 256;

const follows = (a: Mark, b: Mark): boolean => {
  const step = stepBetween(a.pts90k, b.pts90k);
  return step >= -MAX_BACK_90K && step <= MAX_AHEAD_90K;
};

/**
 * Follows the times of a stream. A single time that fits neither the ones before nor the ones after is damage, not a
 * break.
 */
export class BreakFinder {
  readonly breaks: ClockBreak[] = [];
  #latest: Mark | null = null;
  #odd: Mark | null = null;

  /** The latest time after the last break. */
  get latest(): Mark | null {
    return this.#latest;
  }

  /** Takes the next PES. */
  push(mark: Mark): void {
    const latest = this.#latest;
    if (latest === null) this.#latest = mark;
    else if (follows(latest, mark)) {
      this.#odd = null;
      if (stepBetween(latest.pts90k, mark.pts90k) > 0) this.#latest = mark;
    } else if (this.#odd !== null && follows(this.#odd, mark)) {
      if (this.breaks.length < MAX_BREAKS) this.breaks.push({ before: latest, after: this.#odd });
      this.#latest = stepBetween(this.#odd.pts90k, mark.pts90k) > 0 ? mark : this.#odd;
      this.#odd = null;
    } else this.#odd = mark;
  }
}

/** Scans of one file. */
export class TimeScanner {
  readonly format: PacketFormat;
  readonly #source: ByteSource;
  readonly #program: ChosenProgram;
  readonly #signal: AbortSignal;

  constructor(format: PacketFormat, source: ByteSource, program: ChosenProgram, signal: AbortSignal) {
    this.format = format;
    this.#source = source;
    this.#program = program;
    this.#signal = signal;
  }

  /**
   * Scans `count` packets from `from` on, up to the end of the file; `anyUnit`: every PES is an access point. Ends early
   * when `enough` accepts what was found.
   */
  async scan(
    from: number,
    count: number,
    anyUnit: boolean,
    enough: (found: Scan) => boolean = () => false,
  ): Promise<Scan> {
    const { format } = this;
    const finder = new MainFinder(this.#program, anyUnit);
    const clock = new BreakFinder();
    const points: AccessPoint[] = [];
    let first: Mark | null = null;
    const start = Math.max(0, from);
    const end = Math.min(start + count, format.packetCount);
    for (let at = start; at < end; at += STEP_PACKETS) {
      const bytes = await readPackets(format, this.#source, at, Math.min(STEP_PACKETS, end - at), this.#signal);
      for (let i = 0; i + PACKET_BYTES <= bytes.length; i += PACKET_BYTES) {
        if (pidOf(bytes, i) !== finder.program.main.id) {
          finder.pushOther(bytes, i);
          continue;
        }
        if (unusable(bytes, i)) continue;
        const packet = at + i / PACKET_BYTES;
        const point = finder.pushMain(bytes, i, packet);
        if (point !== null) points.push(point);
        if (!startsUnit(bytes, i)) continue;
        const pts90k = readPesHeader(payloadOf(bytes, i))?.pts90k ?? null;
        if (pts90k === null) continue;
        first ??= { packet, pts90k };
        clock.push({ packet, pts90k });
      }
      if (enough({ points, first, last: clock.latest, breaks: clock.breaks })) break;
    }
    return { points, first, last: clock.latest, breaks: clock.breaks };
  }
}
