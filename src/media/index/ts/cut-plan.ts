/**
 * Where HLS segments of a transport stream begin. There is no index, and looking for every keyframe would fetch the
 * whole file before the playlist is known. So a segment begins at the first random access point at or after a packet
 * number fixed here once: the place is exact whenever it is needed, and the playlist never changes. In small files all
 * random access points are found at once and the durations are exact; in large ones times are sampled at a few places
 * and mapped to bytes linearly between them, so that durations are estimates while timestamps in the media are exact.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { planCuts } from "../../hls/plan.ts";
import { wrap33 } from "../../mux/ts/packets.ts";
import { PACKET_BYTES, payloadOf, pidOf, readPesHeader, startsUnit, unusable } from "../../../bytes/ts/packet.ts";
import { type PacketFormat, readPackets } from "./packet-source.ts";
import type { ChosenProgram } from "./programs.ts";
import { type AccessPoint, AccessPointFinder } from "../../../bytes/ts/random-access.ts";

/** The plan. */
export interface CutPlan {
  /** Packet numbers from which each segment's random access point is searched; ascending, the first is 0. */
  readonly searchFrom: readonly number[];
  readonly durationsMs: readonly number[];
  readonly durationMs: number;
  /** Cut at any PES of the main stream: it has no random access points that we can tell. */
  readonly anyUnit: boolean;
}

/** Files up to this size are looked at as a whole, bytes: players fetch as much before they show anything. */
const WHOLE_BYTES = 8 * 1024 * 1024;
/** Otherwise this much of the beginning tells how far apart random access points are, bytes. */
const HEAD_BYTES = 1024 * 1024;
/** Times are sampled at these fractions of the file, and at its end. */
const SAMPLE_FRACTIONS = [0.25, 0.5, 0.75];
/** Packets looked at for one sample (about 128 KiB), and at the end (about 512 KiB). */
const SAMPLE_PACKETS = 700;
const TAIL_PACKETS = 2800;
/** Segments are at least this many times the distance of random access points, so that none is empty. */
const GROUP_FACTOR = 2;
/** A step of the clock beyond this is a discontinuity where packets follow each other, 90 kHz. */
const JUMP_90K = 60 * 90_000;
/** Credible bitrates, bytes a second; outside them the clock has jumped between two samples. */
const LEAST_RATE = 2_000;
const GREATEST_RATE = 40_000_000;
/** Taken where no two times are known, bytes a second. */
const UNKNOWN_RATE = 500_000;
/** Most segments. */
const MAX_SEGMENTS = 50_000;

interface Scan {
  readonly points: readonly AccessPoint[];
  /** Main stream: packet of each PES with its time, as far as needed. */
  readonly first: AccessPoint | null;
  readonly last: AccessPoint | null;
}

async function scan(
  format: PacketFormat,
  source: ByteSource,
  program: ChosenProgram,
  first: number,
  count: number,
  anyUnit: boolean,
  signal: AbortSignal,
): Promise<Scan> {
  const finder = new AccessPointFinder(program.main.codec, anyUnit);
  const points: AccessPoint[] = [];
  const end = Math.min(first + count, format.packetCount);
  let firstTime: AccessPoint | null = null;
  let lastTime: AccessPoint | null = null;
  for (let from = first; from < end; from += TAIL_PACKETS) {
    const bytes = await readPackets(format, source, from, Math.min(TAIL_PACKETS, end - from), signal);
    for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
      if (pidOf(bytes, at) !== program.main.id || unusable(bytes, at)) continue;
      const packet = from + at / PACKET_BYTES;
      const point = finder.push(bytes, at, packet);
      if (point !== null) points.push(point);
      if (!startsUnit(bytes, at)) continue;
      const pts90k = readPesHeader(payloadOf(bytes, at))?.pts90k ?? null;
      if (pts90k === null) continue;
      firstTime ??= { packet, pts90k };
      // Pictures are not in the order of their times; a step back of up to 2^32 is one, not a wrap.
      if (lastTime === null || wrap33(pts90k - lastTime.pts90k!) < 2 ** 32) lastTime = { packet, pts90k };
    }
  }
  return { points, first: firstTime, last: lastTime };
}

/** Time from `a` to `b`; where the clock jumped, what the bytes between take at `rate` (bytes a tick). */
function elapsed90k(a: AccessPoint, b: AccessPoint, strideBytes: number, rate: number): number {
  const ticks = wrap33(b.pts90k! - a.pts90k!);
  const bytes = (b.packet - a.packet) * strideBytes;
  const perSecond = ticks > 0 ? bytes / ticks * 90_000 : Infinity;
  return perSecond >= LEAST_RATE && perSecond <= GREATEST_RATE ? ticks : bytes / rate;
}

function exactPlan(format: PacketFormat, whole: Scan, anyUnit: boolean, target90k: number): CutPlan {
  const times: number[] = [];
  let time = 0;
  const points = whole.points.filter((point) => point.pts90k !== null);
  for (const [i, point] of points.entries()) {
    const step = i === 0 ? 0 : wrap33(point.pts90k! - points[i - 1]!.pts90k!);
    if (step > 0 && step < JUMP_90K) time += step;
    times.push(time);
  }
  const last = points.at(-1);
  const tail = last === undefined || whole.last === null ? 0 : wrap33(whole.last.pts90k! - last.pts90k!);
  const end = time + (tail < JUMP_90K ? tail : 0) + 3600;
  const cuts = planCuts(times, target90k, end);
  if (cuts.length === 0) {
    const durationMs = format.packetCount * format.strideBytes / UNKNOWN_RATE * 1000;
    return { searchFrom: [0], durationsMs: [durationMs], durationMs, anyUnit };
  }
  return {
    searchFrom: cuts.map((cut, i) => i === 0 ? 0 : points[cut]!.packet),
    durationsMs: cuts.map((cut, i) => ((i + 1 < cuts.length ? times[cuts[i + 1]!]! : end) - times[cut]!) / 90),
    durationMs: end / 90,
    anyUnit,
  };
}

/** Pairs of packet number and time since the start, by linear pieces. */
function timeMap(format: PacketFormat, samples: readonly AccessPoint[]): { packets: number[]; times: number[] } {
  const steps = samples.slice(1).map((b, i) => ({ a: samples[i]!, b }));
  const rates = steps
    .map(({ a, b }) => (b.packet - a.packet) * format.strideBytes / wrap33(b.pts90k! - a.pts90k!))
    .filter((rate) => rate * 90_000 >= LEAST_RATE && rate * 90_000 <= GREATEST_RATE)
    .sort((x, y) => x - y);
  const rate = rates[rates.length >> 1] ?? UNKNOWN_RATE / 90_000;
  const packets = [0];
  const times = [0];
  for (const { a, b } of steps) {
    times.push(times.at(-1)! + elapsed90k(a, b, format.strideBytes, rate));
    packets.push(b.packet);
  }
  const rest = (format.packetCount - packets.at(-1)!) * format.strideBytes;
  if (steps.length === 0) times.push(rest / rate);
  else times[times.length - 1] = times.at(-1)! + 3600;
  if (steps.length === 0) packets.push(format.packetCount);
  else packets[packets.length - 1] = format.packetCount;
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

/** Makes the plan. Reads the whole of small files, else the head, the tail and three places between. */
export async function planTransportCuts(
  format: PacketFormat,
  source: ByteSource,
  program: ChosenProgram,
  targetMs: number,
  signal: AbortSignal,
): Promise<CutPlan> {
  const whole = format.packetCount * format.strideBytes <= WHOLE_BYTES;
  const headPackets = whole ? format.packetCount : Math.floor(HEAD_BYTES / format.strideBytes);
  const look = (first: number, count: number, any: boolean) =>
    scan(format, source, program, Math.max(0, first), count, any, signal);
  let anyUnit = program.main.kind !== "video";
  let head = await look(0, headPackets, anyUnit);
  if (head.points.length === 0) {
    anyUnit = true;
    head = await look(0, headPackets, anyUnit);
  }
  const target90k = targetMs * 90;
  if (whole) return exactPlan(format, head, anyUnit, target90k);
  const samples = await Promise.all([
    ...SAMPLE_FRACTIONS.map(async (fraction) =>
      (await look(Math.floor(format.packetCount * fraction), SAMPLE_PACKETS, true)).first
    ),
    look(format.packetCount - TAIL_PACKETS, TAIL_PACKETS, true).then((tail) => tail.last),
  ]);
  const map = timeMap(format, [head.first, ...samples].filter((sample) => sample !== null));
  let spacing90k = 0;
  const ends = [...head.points, head.last].filter((point) => point?.pts90k != null);
  for (let i = 1; i < ends.length; i++) {
    const step = wrap33(ends[i]!.pts90k! - ends[i - 1]!.pts90k!);
    if (step < JUMP_90K) spacing90k = Math.max(spacing90k, step);
  }
  const total = map.times.at(-1)!;
  const length = Math.max(target90k, spacing90k * GROUP_FACTOR);
  const count = Math.max(1, Math.min(MAX_SEGMENTS, Math.round(total / length)));
  return {
    searchFrom: spreadEvenly(map, count),
    durationsMs: Array.from({ length: count }, () => total / count / 90),
    durationMs: total / 90,
    anyUnit,
  };
}
