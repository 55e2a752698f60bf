/**
 * MPEG TS files: 188-byte packets, M2TS (192) and with parity (204). The TS output is the file's own packets, without the
 * extra bytes stored around them: a multiplexer already gave the file its clock and tables, so the output's length
 * follows from the file size alone and any range is plain arithmetic. Packets change only if the viewer asks for it: maps
 * that name the preferred audio first, and AAC in place of other sound. HLS segments are cut from the same stream.
 */
import type { ByteSource } from "../../bytes/source.ts";
import { MillraceError } from "../../errors.ts";
import { readTransportSegment, type SegmentPlace } from "./cut/segment.ts";
import { targetDurationS } from "../layout/segment-plan.ts";
import { DEFAULT_SEGMENT_TARGET_MS } from "../layout/segment-plan.ts";
import { stepBetween, wrap33 } from "../../bytes/ts/stamps.ts";
import { GapFinder } from "../../bytes/ts/gap-finder.ts";
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { FaultLedger } from "../model/faults.ts";
import { languagesOf } from "../model/language.ts";
import { changesMap, editMap, type MapEdit } from "./rewrite/map-edit.ts";
import { readTs } from "./read-range.ts";
import { type Rewriting, rewrittenFormat, rewrittenSource } from "./rewrite/rewritten.ts";
import type { MediaOpenOptions } from "../model/timeline.ts";
import { aacTrack, becomesAac } from "../transcode/choice.ts";
import { TsAudio } from "./sound/ts-audio.ts";
import type { AudioEncoder, AudioTranscoding } from "../model/audio-target.ts";
import { layoutFrom, segmentAt } from "../layout/late-start.ts";
import type { HlsPlan, HlsSegment, Presentation, Track, TsLayout } from "../model/types.ts";
import { tsRenditions } from "./renditions.ts";
import { AccessGrid } from "./access-grid.ts";
import { findAccessPoint, type FoundPoint, tablesBefore } from "./access-search.ts";
import { type CutPlan, planTransportCuts } from "./cut-plan.ts";
import { detectPackets, type PacketFormat } from "../../bytes/ts/packet-source.ts";
import { type ChosenProgram, findProgram, outputTracks } from "./programs.ts";
import { TimeScanner } from "./time-scan.ts";

/** Part of the fingerprint: raise it whenever the bytes of a segment or of the TS change. */
const CUTTER_VERSION = 3;
/** How long before the first picture sound may begin, 90 kHz (10 s). */
const ORIGIN_SLACK_90K = 900_000;
/** A segment that lasts this much longer or shorter than the playlist says is reported, 90 kHz (10 s): all are estimates. */
const MISPLACED_90K = 900_000;
/**
 * Packets whose times give a first guess of the bit rate (the 64 KiB already read to recognise packets), and the least
 * media in them that counts, 90 kHz.
 */
const RATE_PACKETS = 348;
const RATE_SPAN_90K = 90_000;

/** The bit rate of the first packets, bytes/s; null if they hold less than a second. */
async function guessRate(
  format: PacketFormat,
  program: ChosenProgram,
  source: ByteSource,
  signal: AbortSignal,
): Promise<number | null> {
  const { first, last, breaks } = await new TimeScanner(format, source, program, signal).scan(0, RATE_PACKETS, "any");
  if (first === null || last === null || breaks.length > 0) return null;
  const span90k = stepBetween(first.pts90k, last.pts90k);
  if (span90k < RATE_SPAN_90K) return null;
  return (last.packet - first.packet) * format.strideBytes * 90_000 / span90k;
}

/** Which sound becomes AAC, and what makes it. */
interface Making {
  readonly becomesAac: (track: Track) => boolean;
  /** Null: none does. */
  readonly encoder: AudioEncoder | null;
  readonly warnings: readonly string[];
}

/** What is made of the sound in `programs`, those at the beginning and the end of the file. */
async function chooseAac(
  programs: readonly ChosenProgram[],
  { transcode, audioEncoder, signal }: MediaOpenOptions,
): Promise<Making> {
  const none = { becomesAac: () => false, encoder: null, warnings: [] };
  if (!asksForMore(transcode)) return none;
  const isAsked = (track: Track) => becomesAac(track, transcode);
  const asked = programs.flatMap(({ tracks }) => tracks.filter(isAsked));
  if (asked.length === 0) return none;
  if (audioEncoder && await audioEncoder.isAvailable(signal)) {
    return { becomesAac: isAsked, encoder: audioEncoder, warnings: [] };
  }
  const names = [...new Set(asked.map(({ codec }) => codec))].join(", ");
  return { ...none, warnings: [`ffmpeg was not found: ${names} is not converted to AAC`] };
}

/** Players get a transport stream unchanged unless the viewer asks otherwise. */
function asksForMore(wish: MediaOpenOptions["transcode"]): wish is AudioTranscoding {
  return wish != null && !wish.onlyIfSilent;
}

/** Chooses among the tracks that segments carry. */
type Pick = (tracks: readonly Track[]) => readonly Track[];

/** The plan, and where its segments begin. */
interface PlacedPlan extends HlsPlan {
  /** The same segments with the tracks alone that `pick` returns. */
  only(pick: Pick): HlsPlan;
  /** Where segment `n` begins. */
  locate(n: number, source: ByteSource, signal: AbortSignal): Promise<FoundPoint>;
}

/** The stream that the player gets: the file's own packets, or with some of them changed. */
interface Delivered {
  /** No packet is changed. */
  readonly isFile: boolean;
  readonly format: PacketFormat;
  over(source: ByteSource): ByteSource;
}

/** What segments are made of. */
interface Segmenting {
  readonly file: PacketFormat;
  /** As the file's first map has it. */
  readonly program: ChosenProgram;
  readonly plan: CutPlan;
  /** Tracks of `program` in segments, as they are delivered. */
  readonly output: readonly Track[];
  readonly preferred: string | null | undefined;
  readonly edit: MapEdit;
  readonly delivered: Delivered;
  readonly faults: FaultLedger;
}

/** Counts in `faults` the segments of `plan` that last much longer or shorter than it says, as far as two in a row were read. */
function lengthWatch({ cuts }: CutPlan, faults: FaultLedger): (n: number, startPts90k: number) => void {
  const starts = new Map<number, number>();
  return (n, startPts90k) => {
    starts.set(n, startPts90k);
    for (const one of [n - 1, n]) {
      const [from, to] = [starts.get(one), starts.get(one + 1)];
      if (from === undefined || to === undefined || cuts[one + 1]!.discontinuity) continue;
      if (Math.abs(stepBetween(from, to) - cuts[one]!.durationMs * 90) > MISPLACED_90K) faults.misplaced(one);
    }
  };
}

function hlsPlan(
  { file, program: asStored, plan, output, preferred, edit, delivered, faults }: Segmenting,
): PlacedPlan {
  const begins = lengthWatch(plan, faults);
  // Maps on another PID stay as they are, and so does the sound that they name.
  const edited = (one: ChosenProgram) =>
    one.mapPid === asStored.mapPid && one.map.programNumber === edit.programNumber
      ? { ...one, map: editMap(one.map, edit) }
      : one;
  const asDelivered = edited(asStored);
  const outputOf = (one: ChosenProgram) => outputTracks(one, preferred);
  // Search in the file to save transcoding, unless the AAC is what is searched.
  const { id, codecId } = asStored.main;
  const isMainMade = output.some((track) => track.id === id && track.codecId !== codecId);
  const program = isMainMade ? asDelivered : asStored;
  const format = isMainMade ? delivered.format : file;
  let startMs = 0;
  const segments = plan.cuts.map(({ durationMs, discontinuity }, index): HlsSegment => {
    const segment = { index, startMs, durationMs, discontinuity };
    startMs += durationMs;
    return segment;
  });
  const grid = new AccessGrid(plan, format.packetCount);
  // The places never change, so search each only once.
  const found = new Map<number, FoundPoint>();
  const locate = async (n: number, source: ByteSource, signal: AbortSignal) => {
    if (plan.cuts[n] === undefined) return { packet: format.packetCount, program };
    const known = found.get(n);
    if (known !== undefined) return known;
    const from = grid.searchFrom(n);
    const where = isMainMade ? delivered.over(source) : source;
    const point = await findAccessPoint(format, where, program, from, plan.rule, signal);
    found.set(n, point);
    return point;
  };
  const read = (n: number, pick: Pick, ...[source, signal, buffers]: SegmentReading) => {
    if (segments[n] === undefined) throw new MillraceError("not_found", `no segment ${n}`);
    const follow = grid.follow(n);
    let hasBegun = false;
    const place: SegmentPlace = {
      first: n === 0,
      searchEnd: grid.searchFrom(n + 1),
      accessPoint(point) {
        if (!hasBegun) begins(n, point.pts90k);
        hasBegun = true;
        follow(point);
      },
      outputOf: (one) => pick(outputOf(one)),
      async start() {
        const { packet, program: there } = await locate(n, source, signal);
        if (there === program) return { packet, program: asDelivered, output: pick(output) };
        return { packet, program: edited(there), output: pick(outputOf(edited(there))) };
      },
      end: async () => (await locate(n + 1, source, signal)).packet,
    };
    return readTransportSegment(delivered.format, place, delivered.over(source), signal, buffers);
  };
  const whole: HlsPlan = {
    segments,
    targetDurationS: targetDurationS(plan.cuts.map(({ durationMs }) => durationMs)),
    zeroPts90k: plan.startPts90k,
    segmentBytes: () => null,
    readSegment: (n, ...from) => read(n, (tracks) => tracks, ...from),
  };
  return { ...whole, locate, only: (pick) => ({ ...whole, readSegment: (n, ...from) => read(n, pick, ...from) }) };
}

/** What a segment is read with. */
type SegmentReading = Parameters<HlsPlan["readSegment"]> extends [number, ...infer Rest] ? Rest : never;

/**
 * Opens a transport stream. Rejects with `bad_media` when it is none or has no tables, `unsupported_media` when it is
 * scrambled or has neither video nor audio, or as the source does.
 */
export async function openTransportStream(source: ByteSource, options: MediaOpenOptions): Promise<Presentation> {
  const { signal } = options;
  const found = await detectPackets(source, signal);
  if (found === null) throw new MillraceError("bad_media", "no transport stream packets found");
  const faults = new FaultLedger();
  const format: PacketFormat = { ...found, onGap: (at) => faults.gap(at) };
  const program = await findProgram(format, source, signal);
  const targetMs = options.segmentTargetMs ?? DEFAULT_SEGMENT_TARGET_MS;
  const sizeBytes = format.packetCount * PACKET_BYTES;
  let known: CutPlan | null = null;
  const plan = async (from: ByteSource, abort: AbortSignal) =>
    known ??= await planTransportCuts(format, from, program, targetMs, abort);
  // The runs of AAC are cut by the mean rate, and a later map may name other sound; unchanged MPEG TS needs only its tables.
  const timed = asksForMore(options.transcode) ? await plan(source, signal) : null;
  const { becomesAac: isMade, encoder, warnings } = await chooseAac([program, timed?.endProgram ?? program], options);
  const bytesPerSecond = timed === null
    ? await guessRate(format, program, source, signal)
    : timed.durationMs > 0
    ? source.sizeBytes * 1000 / timed.durationMs
    : null;
  const { map, mapPid } = program;
  const edit: MapEdit = {
    programNumber: map.programNumber,
    preferred: languagesOf(options.preferredAudioLanguage),
    becomesAac: isMade,
  };
  const rewriting: Rewriting = {
    format,
    mapPid,
    edit: encoder !== null || changesMap(map, edit) ? edit : null,
    overlay: encoder === null ? null : new TsAudio({
      format,
      map,
      mapPid,
      becomesAac: isMade,
      origin90k: wrap33((timed?.startPts90k ?? 0) - ORIGIN_SLACK_90K),
      bytesPerSecond,
      encoder,
      faults,
    }),
  };
  const delivered: Delivered = rewriting.edit === null && rewriting.overlay === null
    ? { isFile: true, format, over: (from) => from }
    : { isFile: false, format: rewrittenFormat(rewriting), over: (from) => rewrittenSource(rewriting, from) };
  const tracks = program.tracks.map((track) => isMade(track) ? aacTrack(track) : track);
  const preferred = options.preferredAudioLanguage;
  const output = outputTracks({ ...program, tracks }, preferred);
  const { strideBytes, firstAt } = format;
  const watch = () => {
    const finder = new GapFinder(strideBytes, (at) => faults.gap(at));
    return (bytes: Uint8Array, at: number) => finder.push(bytes, at);
  };
  let hls: PlacedPlan | null = null;
  const planned = async (from: ByteSource, abort: AbortSignal) =>
    hls ??= hlsPlan({
      file: format,
      program,
      plan: await plan(from, abort),
      output,
      preferred,
      edit,
      delivered,
      faults,
    });
  const ts: TsLayout = {
    sizeBytes,
    ...(delivered.isFile && strideBytes === PACKET_BYTES ? { copiedFrom: firstAt, watch } : {}),
    fingerprint: [
      "ts",
      CUTTER_VERSION,
      source.sizeBytes,
      strideBytes,
      firstAt,
      ...(rewriting.edit === null ? [] : output.map(({ id, codec }) => `${id}${codec}`)),
      ...(encoder === null ? [] : ["aac"]),
    ].join("-"),
    read: (start, end, from, abort) =>
      readTs(delivered.format, start, Math.min(end ?? sizeBytes, sizeBytes), delivered.over(from), abort),
  };
  return {
    container: "mpegts",
    tracks,
    outputTracks: output,
    durationMs: timed?.durationMs ?? null,
    bytesPerSecond,
    warnings: [...warnings, ...program.warnings],
    // Tables of the program and the plan of segments: next to nothing.
    indexBytes: 0,
    faults,
    ts,
    planHls: planned,
    ...tsRenditions(tracks, output, planned),
    async tsFrom(ms, from, abort) {
      const plan = await planned(from, abort);
      const first = segmentAt(plan, ms);
      if (first === 0) return ts;
      const { packet, program: there } = await plan.locate(first, from, abort);
      const at = await tablesBefore(format, from, there.mapPid, packet, abort);
      return layoutFrom(ts, Math.min(at * PACKET_BYTES, sizeBytes));
    },
  };
}
