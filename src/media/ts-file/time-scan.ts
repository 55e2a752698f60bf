/**
 * Scans a stretch of a transport stream for random access points and times of its main stream, and for breaks of the
 * clock.
 */
import type { ByteSource } from "../../bytes/source.ts";
import { PACKET_BYTES, payloadOf, pidOf, readPesHeader, startsUnit, unusable } from "../../bytes/ts/packet.ts";
import type { AccessPoint, PointRule } from "../../bytes/ts/random-access.ts";
import { stepBetween } from "../../bytes/ts/stamps.ts";
import { type PacketFormat, readPackets } from "../../bytes/ts/packet-source.ts";
import { MainFinder } from "./access-search.ts";
import type { ChosenProgram } from "./programs.ts";

/** A PES with its time. */
export interface TimedPes {
  /** Number of its first packet. */
  readonly packet: number;
  /** 33 bits. */
  readonly pts90k: number;
  /** How far the sound had come: its stretches without a break so far, and the time in all of them, 90 kHz. */
  readonly sound?: SoundPlace;
}

interface SoundPlace {
  readonly breaks: number;
  readonly total90k: number;
}

/** Where the clock breaks, or the program has other tracks from then on. */
export interface ClockBreak {
  /** The latest time before it. */
  readonly before: TimedPes;
  /** The first PES after it. */
  readonly after: TimedPes;
  /** The tracks are others. */
  readonly isOther?: boolean;
}

/** What was found in a stretch. */
export interface Scan {
  readonly points: readonly AccessPoint[];
  /** PES of the main stream that have a time. */
  readonly units: number;
  readonly first: TimedPes | null;
  /** The latest time after the last break. */
  readonly last: TimedPes | null;
  readonly breaks: readonly ClockBreak[];
  /** The program at the end; null if no map of it came. */
  readonly program: ChosenProgram | null;
}

/** Packets read at a time, about 128 KiB: enough for a search, and a slow swarm delivers it in a few seconds. */
const STEP_PACKETS = 700;
/** Pictures are not in the order of their times; a step back beyond this is a break, 90 kHz (2 s). */
const MAX_BACK_90K = 180_000;
/** A step ahead beyond this from one PES to the next is a break, 90 kHz (10 s). */
const MAX_AHEAD_90K = 900_000;
/** Most breaks reported for one stretch; a file with more is damaged throughout. */
const MAX_BREAKS = 256;

/** Whether the clock goes on from `a` to `b`. */
export const follows = (a: TimedPes, b: TimedPes): boolean => {
  const step = stepBetween(a.pts90k, b.pts90k);
  if (step >= -MAX_BACK_90K && step <= MAX_AHEAD_90K) return true;
  // Where the sound runs on as long, pictures are missing, and the clock is whole.
  if (step < 0 || a.sound === undefined || b.sound === undefined || a.sound.breaks !== b.sound.breaks) return false;
  return Math.abs(b.sound.total90k - a.sound.total90k - step) <= MAX_BACK_90K;
};

/** Follows the times of the sound beside the pictures. */
class SoundClock {
  place: SoundPlace = { breaks: 0, total90k: 0 };
  #last90k: number | null = null;

  push(pts90k: number): void {
    const step = this.#last90k === null ? 0 : stepBetween(this.#last90k, pts90k);
    const isSteady = Math.abs(step) <= MAX_BACK_90K;
    const { breaks, total90k } = this.place;
    this.place = isSteady ? { breaks, total90k: total90k + step } : { breaks: breaks + 1, total90k };
    this.#last90k = pts90k;
  }
}

/**
 * Follows the times of a stream. A single time that fits neither the ones before nor the ones after is damage, not a
 * break.
 */
export class BreakFinder {
  readonly breaks: ClockBreak[] = [];
  #latest: TimedPes | null = null;
  #odd: TimedPes | null = null;
  #isOther = false;

  /** The latest time after the last break. */
  get latest(): TimedPes | null {
    return this.#latest;
  }

  /** The tracks are others from the next PES on. */
  change(): void {
    this.#isOther = this.#latest !== null;
  }

  #add(found: ClockBreak): void {
    if (this.breaks.length < MAX_BREAKS) this.breaks.push(found);
  }

  /** Takes the next PES. */
  push(mark: TimedPes): void {
    const latest = this.#latest;
    if (latest === null) this.#latest = mark;
    else if (this.#isOther) {
      this.#add({ before: latest, after: mark, isOther: true });
      this.#latest = mark;
      this.#odd = null;
      this.#isOther = false;
    } else if (follows(latest, mark)) {
      this.#odd = null;
      if (stepBetween(latest.pts90k, mark.pts90k) > 0) this.#latest = mark;
    } else if (this.#odd !== null && follows(this.#odd, mark)) {
      this.#add({ before: latest, after: this.#odd });
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
   * Scans `count` packets from `from` on, up to the end of the file; access points by `rule`. Ends early
   * when `enough` accepts what was found.
   */
  async scan(
    from: number,
    count: number,
    rule: PointRule,
    enough: (found: Scan) => boolean = () => false,
  ): Promise<Scan> {
    const { format } = this;
    const finder = new MainFinder(this.#program, rule);
    const clock = new BreakFinder();
    const sound = new SoundClock();
    const points: AccessPoint[] = [];
    let first: TimedPes | null = null;
    let units = 0;
    const found = () => ({
      ...{ points, units, first, last: clock.latest, breaks: clock.breaks },
      program: finder.hasSeenMap ? finder.program : null,
    });
    const start = Math.max(0, from);
    const end = Math.min(start + count, format.packetCount);
    for (let at = start; at < end; at += STEP_PACKETS) {
      const bytes = await readPackets(format, this.#source, at, Math.min(STEP_PACKETS, end - at), this.#signal);
      for (let i = 0; i + PACKET_BYTES <= bytes.length; i += PACKET_BYTES) {
        const { main, tracks } = finder.program;
        const pid = pidOf(bytes, i);
        if (pid !== main.id) {
          if (finder.pushOther(bytes, i)) clock.change();
          if (!startsUnit(bytes, i) || unusable(bytes, i) || tracks.find(({ kind }) => kind === "audio")?.id !== pid) {
            continue;
          }
          const pts90k = readPesHeader(payloadOf(bytes, i))?.pts90k ?? null;
          if (pts90k !== null) sound.push(pts90k);
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
        units++;
        clock.push({ packet, pts90k, sound: sound.place });
      }
      if (enough(found())) break;
    }
    return found();
  }
}
