/**
 * Where HLS segments of a transport stream begin. There is no index, and finding every keyframe would fetch the whole
 * file before the playlist is known. So a segment begins at the first random access point at or after a packet number
 * fixed here once: the exact place can be found when needed, and the playlist never changes. In small files all random
 * access points are found at once and the durations are exact. In large ones the first and the last time are mapped to
 * bytes linearly, so that durations are estimates while timestamps in the media are exact. More places are read only if
 * the two do not fit the bit rate of the beginning: each costs a player in a slow swarm seconds. Where the clock breaks,
 * a segment ends and the next is marked as discontinuous.
 */
import type { ByteSource } from "../../bytes/source.ts";
import { MAX_SEGMENTS, planCuts } from "../layout/segment-plan.ts";
import { stepBetween } from "../../bytes/ts/stamps.ts";
import { ChangeSearch } from "./change-search.ts";
import { BreakSearch, SAMPLE_PACKETS, type Section, sectionsOf, usualRate } from "./clock-sections.ts";
import type { PacketFormat } from "../../bytes/ts/packet-source.ts";
import type { PointRule } from "../../bytes/ts/random-access.ts";
import type { ChosenProgram } from "./programs.ts";
import { type ClockBreak, follows, type Scan, type TimedPes, TimeScanner } from "./time-scan.ts";

/** A segment. */
export interface PlannedCut {
  /** Packet number from which to search for its random access point. */
  readonly searchFrom: number;
  readonly durationMs: number;
  /** Its clock does not continue that of the previous segment. */
  readonly discontinuity: boolean;
}

/** The plan. */
export interface CutPlan {
  /** In order; the first is searched from 0 on. */
  readonly cuts: readonly PlannedCut[];
  readonly durationMs: number;
  /** Which PES of the main stream segments can begin with. */
  readonly rule: PointRule;
  /** First time of the main stream in the file, 33 bits; null if none was found. */
  readonly startPts90k: number | null;
  /** The program at the end of the file; null if no map was found there. */
  readonly endProgram: ChosenProgram | null;
}

/** Most bytes read at the beginning to learn how far apart random access points are. Smaller files are read whole. */
const HEAD_BYTES = 1024 * 1024;
/** A segment's worth of media with this many random access points is enough, too. */
const HEAD_POINTS = 3;
/** The file's mean rate may differ from that of the beginning by this factor, up or down, without suspicion. */
const SUSPICIOUS_FACTOR = 1.5;
/** If the two differ more, times are sampled at these fractions of the file. */
const SAMPLE_FRACTIONS = [0.25, 0.5, 0.75];
/** If the bit rate between two samples differs from the usual one by this factor, up or down, another sample is taken. */
const UNEVEN_FACTOR = 1.25;
/** Steps back of `SAMPLE_PACKETS` from the end in search of the last time: 1 MiB. */
const TAIL_STEPS = 8;
/** Segments are at least this many times the distance of random access points, so that none is empty. */
const GROUP_FACTOR = 2;
/** Most distance of consecutive random access points, 90 kHz. */
const MAX_SPACING_90K = 60 * 90_000;
/** PES of video that are further apart may have several pictures each, 90 kHz (0.25 s). */
const LONG_UNIT_90K = 22_500;
/** How long the last picture of a section is assumed to be shown, 90 kHz. */
const LAST_PICTURE_90K = 3600;

/** Segments planned in one section, with their share of the time. */
type SectionCuts = readonly Omit<PlannedCut, "discontinuity">[];

function joinSections(sections: readonly SectionCuts[]): PlannedCut[] {
  const cuts: PlannedCut[] = [];
  for (const section of sections) {
    for (const [i, cut] of section.entries()) cuts.push({ ...cut, discontinuity: i === 0 && cuts.length > 0 });
  }
  return cuts.map((cut, i) => i === 0 ? { ...cut, searchFrom: 0 } : cut);
}

/** Cuts at known random access points. */
function exactCuts(points: readonly TimedPes[], last90k: number, target90k: number): SectionCuts {
  const origin = points[0]!.pts90k;
  let time = 0;
  const times = points.map(({ pts90k }) => time = Math.max(time, stepBetween(origin, pts90k)));
  const end = Math.max(time, stepBetween(origin, last90k)) + LAST_PICTURE_90K;
  const cuts = planCuts(times, target90k, end);
  return cuts.map((cut, i) => ({
    searchFrom: points[cut]!.packet,
    durationMs: ((i + 1 < cuts.length ? times[cuts[i + 1]!]! : end) - times[cut]!) / 90,
  }));
}

function exactPlan(format: PacketFormat, whole: Scan, rule: PointRule, target90k: number): CutPlan {
  const known = { rule, startPts90k: whole.first?.pts90k ?? null, endProgram: whole.program };
  const points = whole.points.flatMap(({ packet, pts90k }) => pts90k === null ? [] : [{ packet, pts90k }]);
  // Where the clock goes on, what comes before the first random access point of the new tracks belongs to the old ones.
  const endOf = ({ before, after, isOther }: ClockBreak) =>
    isOther && follows(before, after) ? points.find(({ packet }) => packet >= after.packet) ?? after : before;
  const ends = [...whole.breaks.map(endOf), ...(whole.last === null ? [] : [whole.last])];
  const sections: SectionCuts[] = [];
  for (const [i, { start, end }] of sectionsOf(format.packetCount, [], whole.breaks).entries()) {
    const own = points.filter(({ packet }) => packet >= start && packet < end);
    if (own.length > 0) sections.push(exactCuts(own, ends[i]?.pts90k ?? own.at(-1)!.pts90k, target90k));
  }
  const cuts = joinSections(sections);
  if (cuts.length === 0) {
    const durationMs = format.packetCount * format.strideBytes / usualRate([], format.strideBytes) / 90;
    return { cuts: [{ searchFrom: 0, durationMs, discontinuity: false }], durationMs, ...known };
  }
  return { cuts, durationMs: cuts.reduce((sum, cut) => sum + cut.durationMs, 0), ...known };
}

/** Pairs of packet number and time since the section's start, by linear pieces. */
function timeMap(
  { start, end, marks }: Section,
  strideBytes: number,
  rate: number,
): { packets: number[]; times: number[] } {
  const packets = [start];
  const times = [0];
  for (const [i, b] of marks.slice(1).entries()) {
    const a = marks[i]!;
    const step = stepBetween(a.pts90k, b.pts90k);
    // A break that was not found: assume the time that the bytes between take.
    times.push(times.at(-1)! + (step > 0 ? step : (b.packet - a.packet) * strideBytes / rate));
    packets.push(b.packet);
  }
  if (marks.length < 2) {
    times.push((end - start) * strideBytes / rate);
    packets.push(end);
  } else {
    times[times.length - 1] = times.at(-1)! + LAST_PICTURE_90K;
    packets[packets.length - 1] = end;
  }
  return { packets, times };
}

function spreadEvenly(map: { packets: number[]; times: number[] }, count: number): number[] {
  const total = map.times.at(-1)!;
  const starts: number[] = [];
  for (let i = 0, piece = 0; i < count; i++) {
    const time = total * i / count;
    while (piece + 2 < map.times.length && map.times[piece + 1]! <= time) piece++;
    const span = map.times[piece + 1]! - map.times[piece]!;
    const share = span > 0 ? (time - map.times[piece]!) / span : 0;
    starts.push(Math.floor(map.packets[piece]! + share * (map.packets[piece + 1]! - map.packets[piece]!)));
  }
  return starts;
}

/** The end of a file. */
interface Tail {
  /** The last time; null if the last MiB has none. */
  readonly last: TimedPes | null;
  readonly program: ChosenProgram | null;
}

async function readTail(scanner: TimeScanner): Promise<Tail> {
  let end = scanner.format.packetCount;
  for (let step = 0; step < TAIL_STEPS && end > 0; step++, end -= SAMPLE_PACKETS) {
    const from = Math.max(0, end - SAMPLE_PACKETS);
    const { last, program } = await scanner.scan(from, end - from, "any");
    if (last !== null) return { last, program };
  }
  return { last: null, program: null };
}

/** Whether the clock runs from `a` to `b` at about the rate of the beginning. */
function isEven(head: Scan, a: TimedPes, b: TimedPes): boolean {
  if (head.first === null || head.last === null || head.breaks.length > 0) return false;
  const rate = (from: TimedPes, to: TimedPes) => (to.packet - from.packet) / stepBetween(from.pts90k, to.pts90k);
  const ratio = rate(a, b) / rate(head.first, head.last);
  return ratio > 1 / SUSPICIOUS_FACTOR && ratio < SUSPICIOUS_FACTOR;
}

/** Samples of the whole file's times: its first and its last; more if these look strange, or the bit rate changes. */
async function sampleTimes(scanner: TimeScanner, head: Scan, tail: TimedPes | null): Promise<TimedPes[]> {
  const { packetCount, strideBytes } = scanner.format;
  const sample = async (packet: number) => (await scanner.scan(packet, SAMPLE_PACKETS, "any")).first;
  if (head.first !== null && tail !== null && isEven(head, head.first, tail)) return [head.first, tail];
  const taken = await Promise.all(SAMPLE_FRACTIONS.map((part) => sample(Math.floor(packetCount * part))));
  const marks = [head.first, ...taken, tail].filter((mark) => mark !== null);
  const rate = usualRate(marks, strideBytes);
  const more = marks.slice(1).map(async (b, i) => {
    const a = marks[i]!;
    const own = (b.packet - a.packet) * strideBytes / stepBetween(a.pts90k, b.pts90k);
    const isEven = own <= rate * UNEVEN_FACTOR && own >= rate / UNEVEN_FACTOR;
    return isEven ? null : await sample(Math.floor((a.packet + b.packet) / 2));
  });
  return [...marks, ...(await Promise.all(more)).filter((mark) => mark !== null)].sort((a, b) => a.packet - b.packet);
}

/** Whether a PES may have several pictures. */
function hasLongUnits({ first, last, units }: Scan): boolean {
  return first !== null && last !== null && stepBetween(first.pts90k, last.pts90k) > (units - 1) * LONG_UNIT_90K;
}

/** Whether both may be the same place. */
const isNear = (a: ClockBreak, b: ClockBreak) => Math.abs(a.after.packet - b.after.packet) <= SAMPLE_PACKETS;

function spacingOf({ points, last }: Scan): number {
  const ends = [...points, last].flatMap((point) => point?.pts90k == null ? [] : [point.pts90k]);
  let spacing90k = 0;
  for (let i = 1; i < ends.length; i++) {
    const step = stepBetween(ends[i - 1]!, ends[i]!);
    if (step < MAX_SPACING_90K) spacing90k = Math.max(spacing90k, step);
  }
  return spacing90k;
}

/**
 * Makes the plan. Reads the whole of small files, else the beginning and the end; more only if the bit rate changes or
 * the clock breaks.
 */
export async function planTransportCuts(
  format: PacketFormat,
  source: ByteSource,
  program: ChosenProgram,
  targetMs: number,
  signal: AbortSignal,
): Promise<CutPlan> {
  const scanner = new TimeScanner(format, source, program, signal);
  const whole = format.packetCount * format.strideBytes <= HEAD_BYTES;
  const headPackets = Math.min(format.packetCount, Math.floor(HEAD_BYTES / format.strideBytes));
  const target90k = targetMs * 90;
  // Requested together with the beginning: one round trip instead of two.
  const tail = whole ? Promise.resolve({ last: null, program: null }) : readTail(scanner);
  // The `await` below throws this later; the handler only avoids "unhandled rejection".
  tail.catch(() => {});
  const enough = ({ first, last, points }: Scan) =>
    !whole && points.length >= HEAD_POINTS && first !== null && last !== null &&
    stepBetween(first.pts90k, last.pts90k) >= target90k;
  let rule: PointRule = program.main.kind === "video" ? "start" : "any";
  let head = await scanner.scan(0, headPackets, rule, enough);
  const retry = async (other: PointRule) => {
    rule = other;
    head = await scanner.scan(0, headPackets, rule, enough);
  };
  if (rule === "start" && hasLongUnits(head)) await retry("within");
  if (head.points.length === 0) await retry("any");
  if (whole) return exactPlan(format, head, rule, target90k);
  const { last, program: lastProgram } = await tail;
  const marks = await sampleTimes(scanner, head, last);
  const rate = usualRate(marks, format.strideBytes);
  const search = new BreakSearch(scanner, rate);
  const breaks: ClockBreak[] = [];
  for (const [i, b] of marks.slice(1).entries()) breaks.push(...await search.between(marks[i]!, b));
  if (lastProgram !== null) {
    const changes = await new ChangeSearch(scanner).between(
      { packet: 0, program },
      { packet: last!.packet, program: lastProgram },
    );
    breaks.push(...changes.filter((change) => !breaks.some((known) => isNear(known, change))));
    breaks.sort((a, b) => a.after.packet - b.after.packet);
  }
  const length = Math.max(target90k, spacingOf(head) * GROUP_FACTOR);
  let left = MAX_SEGMENTS;
  const sections = sectionsOf(format.packetCount, marks, breaks).map((section): SectionCuts => {
    const map = timeMap(section, format.strideBytes, rate);
    const total = map.times.at(-1)!;
    const count = Math.max(1, Math.min(left, Math.round(total / length)));
    left -= count;
    return spreadEvenly(map, count).map((searchFrom) => ({ searchFrom, durationMs: total / count / 90 }));
  });
  const cuts = joinSections(sections);
  const durationMs = cuts.reduce((sum, cut) => sum + cut.durationMs, 0);
  return { cuts, durationMs, rule, startPts90k: head.first?.pts90k ?? null, endProgram: lastProgram };
}
