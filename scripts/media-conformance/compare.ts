/** Compares what a file became with what it was. */
import { Buffer } from "node:buffer";
import { writeFileSync } from "node:fs";
import { concatBytes } from "../../src/bytes/hex.ts";
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { checkTs, type TsReport } from "../../test/support/ts-check.ts";
import type { Muxed } from "./mux.ts";
import { contents, type Packet, probe, type Stream } from "./probe.ts";
import type { Played } from "./swarm-player.ts";

/** Largest difference of a timestamp and of the offset of sound and pictures, ms. */
const MAX_TIME_MS = 1;
/** The same for sound in Matroska, ms: ffprobe counts on in rounded steps within a block of several frames. */
const MAX_LACED_TIME_MS = 2.5;
/** Largest difference between EXTINF and the segment, ms: a picture or a frame of sound at its edges. */
const MAX_EXTINF_MS = 120;
/**
 * A TS is no larger than so many times its source from this rate on, bits/s at up to 25 pictures a second (with more of
 * them it takes as much more, as each has a PES). In `slots` access units are not known in advance: they keep room for them,
 * filled up with null packets.
 */
const SIZE_BOUNDS: readonly { readonly bitsPerSecond: number; readonly exact: number; readonly slots: number }[] = [
  { bitsPerSecond: 350_000, exact: 1.25, slots: 1.25 },
  { bitsPerSecond: 200_000, exact: 1.25, slots: 1.45 },
  { bitsPerSecond: 60_000, exact: 2, slots: 2.5 },
  { bitsPerSecond: 0, exact: 5, slots: 6 },
];
/** A frame of AAC that is made, s, and how far its first and its last may be from the first and last packet of the source, s. */
const MADE_FRAME_S = 1024 / 48_000;
const MAX_MADE_S = 0.06;
/** Codecs that the TS carries as they are. */
const CARRIED = new Set([
  "h264",
  "hevc",
  "mpeg2video",
  "mpeg1video",
  "mpeg4",
  "aac",
  "aac_latm",
  "mp3",
  "mp2",
  "ac3",
  "eac3",
]);

/** One way in which a stream differs from its source. */
export interface Deviation {
  /** As in `Recipe.forced`. */
  readonly kind:
    | "faults"
    | "ledger"
    | "lost"
    | "times"
    | "offset"
    | "pictures"
    | "sound"
    | "structure"
    | "ranges"
    | "joined"
    | "extinf"
    | "size"
    | "swarm";
  readonly text: string;
}

/** Figures for the table. */
export interface Comparison {
  readonly deviations: readonly Deviation[];
  readonly ratio: number;
  /** Of the source. */
  readonly bitsPerSecond: number;
}

/** The streams of the source that the TS should carry, in its order. `asAac`: sound of any codec. */
function expected(source: readonly Stream[], asAac: boolean): Stream[] {
  const carried = source.filter(({ kind, codec, packets }) =>
    (CARRIED.has(codec) || (asAac && kind === "audio")) && packets.length > 0
  );
  const video = carried.find(({ kind }) => kind === "video");
  return [...(video === undefined ? [] : [video]), ...carried.filter(({ kind }) => kind === "audio")];
}

const ordered = (packets: readonly Packet[]) => packets.map(({ pts }) => pts).sort((a, b) => a - b);
const ms = (seconds: number) => (seconds * 1000).toFixed(1);

function compareTimes(before: Stream, after: Stream, zero: number, maxMs: number): Deviation[] {
  const name = `${before.kind} ${before.index}`;
  const was = ordered(before.packets);
  const is = ordered(after.packets);
  if (was.length !== is.length) return [{ kind: "lost", text: `${name}: ${was.length} packets became ${is.length}` }];
  const found: Deviation[] = [];
  const offset = is[0]! - was[0]! - zero;
  if (Math.abs(offset) * 1000 > maxMs) found.push({ kind: "offset", text: `${name}: off by ${ms(offset)} ms` });
  let worst = 0;
  for (let i = 0; i < was.length; i++) worst = Math.max(worst, Math.abs(is[i]! - was[i]! - offset - zero));
  if (worst * 1000 > maxMs) found.push({ kind: "times", text: `${name}: times off by up to ${ms(worst)} ms` });
  for (let i = 1; i < after.packets.length; i++) {
    if (after.packets[i]!.dts > after.packets[i - 1]!.dts) continue;
    found.push({ kind: "times", text: `${name}: decoding times run back at packet ${i}` });
    break;
  }
  return found;
}

/** Sound that was made: frame after frame, as long as `before`. */
function compareMade(before: Stream, after: Stream, zero: number): Deviation[] {
  const [was, is] = [ordered(before.packets), ordered(after.packets)];
  const found: Deviation[] = [];
  const step = is.findIndex((time, i) => i > 0 && Math.abs(time - is[i - 1]! - MADE_FRAME_S) > MADE_FRAME_S / 20);
  if (step > 0) found.push({ kind: "sound", text: `made sound has a gap at ${is[step]!.toFixed(3)} s` });
  // The last packet may be shorter than those before it, and its sound is many frames where packets are long.
  const lastS = Math.max(0, was.at(-1)! - (was.at(-2) ?? was.at(-1)!));
  const ends = [[was[0]!, is[0]!, 0], [was.at(-1)!, is.at(-1)!, lastS]] as const;
  for (const [wasAt, isAt, longer] of ends) {
    const off = isAt - wasAt - zero;
    if (off < -MAX_MADE_S || off > MAX_MADE_S + longer) {
      found.push({ kind: "offset", text: `made sound ends or begins ${ms(off)} ms off` });
    }
  }
  return found;
}

/** Compares the segments of a transport stream, which have tables of their own, with the file. */
function compareSegments(source: readonly Stream[], { segments }: Played, asAac: boolean, scratch: string) {
  writeFileSync(scratch, concatBytes([...segments]));
  const output = probe(scratch);
  return source.flatMap((before, i) => {
    const after = output[i];
    if (after === undefined) return [{ kind: "lost" as const, text: `segments lack ${before.kind} ${before.index}` }];
    return asAac && before.kind === "audio" && before.codec !== "aac"
      ? compareMade(before, after, 0)
      : compareTimes(before, after, 0, MAX_TIME_MS);
  });
}

function compareContents(
  file: string,
  source: readonly Stream[],
  ts: string,
  output: readonly Stream[],
): Deviation[] {
  const was = contents(file, source, /\.m?2?ts$/.test(file));
  const is = contents(ts, output, true);
  return source.flatMap(({ kind, index }, i): Deviation[] => {
    const [before, after] = [was[i]!, is[i]!];
    const same = before.filter((hash, n) => hash === after[n]).length;
    if (same === before.length && after.length === same) return [];
    const text = `${kind} ${index}: ${same} of ${before.length} are the same`;
    return [{ kind: kind === "video" ? "pictures" : "sound", text }];
  });
}

function extinf({ extinfMs, segments }: Played): Deviation[] {
  const firsts = segments.map((segment) => checkTs(segment).streams[0]!.units.map(({ pts }) => pts));
  for (const [i, durationMs] of extinfMs.entries()) {
    const times = firsts[i]!;
    const next = firsts[i + 1];
    if (times.length === 0) return [{ kind: "extinf", text: `segment ${i} has nothing of the first stream` }];
    // The last one ends one picture after its last one, whose duration is not known.
    if (next === undefined || next.length === 0 || i === 0) continue;
    const off = (Math.min(...next) - Math.min(...times)) / 90 - durationMs;
    if (Math.abs(off) > MAX_EXTINF_MS) {
      return [{ kind: "extinf", text: `segment ${i}: ${off.toFixed(0)} ms off its EXTINF` }];
    }
  }
  return [];
}

/** Where `actual` parts from `expected`; null where it does not. */
function partsAt(actual: Uint8Array, expected: Uint8Array): number | null {
  if (Buffer.compare(actual, expected) === 0) return null;
  const at = actual.findIndex((byte, i) => byte !== expected[i]);
  return at < 0 ? actual.length : at;
}

function structure(report: TsReport): Deviation[] {
  return report.problems.slice(0, 2).map((text) => ({ kind: "structure", text }));
}

/** What the engine's own count misses: of what ffmpeg finds in the file, or of what comes out. */
function ledger(
  { presentation, report }: Muxed,
  source: readonly Stream[],
  isMade: (one: Stream) => boolean,
): Deviation[] {
  const isTs = presentation.container === "mpegts";
  const uncounted = source.flatMap((one, i) => {
    const held = report.tracks[i]?.held ?? 0;
    // ffmpeg splits the PES of a transport stream, and made sound has frames of its own.
    return isTs || isMade(one) || held === one.packets.length
      ? []
      : [`${one.kind} ${one.index}: ${held} of ${one.packets.length} packets were counted`];
  });
  const lost = report.problems.filter((problem) => problem !== presentation.faults.warning);
  return [...uncounted, ...lost].map((text) => ({ kind: "ledger", text }));
}

/** What to compare. */
export interface Subject {
  /** The file that was played, or another one with the same in it. */
  readonly file: string;
  readonly sourceBytes: number;
  readonly played: Played;
  readonly muxed: Muxed;
  /** Sound was asked for as AAC. */
  readonly asAac: boolean;
  /** Path for the TS. */
  readonly scratch: string;
}

/** Compares what was played with the file it was. */
export function compare({ file, sourceBytes, played, muxed, asAac, scratch }: Subject): Comparison {
  writeFileSync(scratch, played.ts);
  const source = expected(probe(file), asAac);
  const isMade = ({ kind, codec }: Stream) => asAac && kind === "audio" && codec !== "aac";
  const isTs = muxed.presentation.container === "mpegts";
  const output = probe(scratch);
  const deviations: Deviation[] = [];
  if (output.length !== source.length) {
    deviations.push({ kind: "lost", text: `${source.length} streams became ${output.length}` });
  }
  // One constant moves everything: the earliest packet of all tells it.
  const least = (streams: readonly Stream[]) =>
    Math.min(...streams.flatMap(({ packets }) => packets.map(({ pts }) => pts)));
  const counts = source.every((one, i) => isMade(one) || one.packets.length === output[i]?.packets.length);
  const reference = output[0] !== undefined && source[0] !== undefined && counts
    ? ordered(output[0].packets)[0]! - ordered(source[0].packets)[0]!
    : least(output) - least(source);
  for (const [i, before] of source.entries()) {
    const after = output[i];
    const isLaced = before.kind === "audio" && /\.mk[av]$/.test(file);
    const maxMs = isLaced ? MAX_LACED_TIME_MS : MAX_TIME_MS;
    if (after === undefined) continue;
    deviations.push(
      ...isMade(before) ? compareMade(before, after, reference) : compareTimes(before, after, reference, maxMs),
    );
  }
  if (!deviations.some(({ kind }) => kind === "lost")) {
    const kept = source.filter((one) => !isMade(one));
    deviations.push(...compareContents(file, kept, scratch, output.filter((_, i) => !isMade(source[i]!))));
  }
  const faults = Object.entries(muxed.presentation.faults?.counts ?? {}).filter(([, count]) => count > 0);
  if (faults.length > 0) {
    deviations.push({ kind: "faults", text: faults.map(([kind, count]) => `${count} ${kind}`).join(", ") });
  }
  deviations.push(...ledger(muxed, source, isMade));
  const report = checkTs(played.ts, { isSegment: !isTs });
  // The packets of a transport stream are the file's own.
  if (!isTs) deviations.push(...structure(report));
  if (played.wrongRanges.length > 0) deviations.push({ kind: "ranges", text: played.wrongRanges.join(", ") });
  if (isTs) deviations.push(...compareSegments(source, played, asAac, scratch));
  const joined = isTs ? null : partsAt(concatBytes([...played.segments]), played.ts);
  if (joined !== null) deviations.push({ kind: "joined", text: `the segments joined part from the TS at ${joined}` });
  const parted = partsAt(played.ts, muxed.ts);
  if (parted !== null) {
    deviations.push({ kind: "swarm", text: `what the swarm plays parts from what the file becomes at ${parted}` });
  }
  deviations.push(...extinf(played));
  const seconds = Math.max(1, (muxed.presentation.durationMs ?? 0) / 1000);
  const rate = sourceBytes * 8 / seconds;
  const pictureRate = source[0]?.kind === "video" ? source[0].packets.length / seconds : 0;
  const comparable = rate * 25 / Math.max(25, pictureRate);
  const bound = SIZE_BOUNDS.find(({ bitsPerSecond }) => comparable >= bitsPerSecond)!;
  const ratio = played.ts.length / sourceBytes;
  // Room for made sound is reserved by its own bit rate.
  if (!asAac && ratio > (report.nullPackets > 0 ? bound.slots : bound.exact)) {
    const nullShare = Math.round(100 * report.nullPackets * PACKET_BYTES / played.ts.length);
    const of = `of ${Math.round(rate / 1000)} kbit/s, ${nullShare} % null packets`;
    deviations.push({ kind: "size", text: `${ratio.toFixed(2)} times the source ${of}` });
  }
  return { deviations, ratio, bitsPerSecond: rate };
}
