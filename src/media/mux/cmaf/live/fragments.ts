/** Segments of broadcasts as fragmented MP4, made from their MPEG TS: pictures, and one sound. */
import type { ChunkBuffers } from "../../../../bytes/chunk-buffers.ts";
import { isTurnDue, turnWhenDue } from "../../../../bytes/turn.ts";
import { MillraceError } from "../../../../errors.ts";
import { PacketSink } from "../../chunks.ts";
import { CaptionFinder } from "../../../codec/captions.ts";
import type { RunSample } from "../../../model/timeline.ts";
import type { FragmentedForm, Track } from "../../../model/types.ts";
import { cmafFormat } from "../formats.ts";
import { FragmentSlot, timedFragments } from "../fragment-slot.ts";
import { type CmafStream, initSegment } from "../init-segment.ts";
import { type Pes, PesReader } from "./pes-reader.ts";
import { type UnitMaker, unitMaker } from "./tracks.ts";

/** Segments that have numbers of their own; their fragments are numbered below them. */
const NUMBERS = 1 << 20;

/** What segments with the same init segment share. */
export interface LiveForm extends FragmentedForm {
  /** Their `trackIndex` is the PID. */
  readonly streams: readonly CmafStream[];
}

/** Pictures and the first sound of `tracks` that can be carried, by PID, with what makes their units. */
function makersOf(tracks: readonly Track[]): Map<number, { readonly track: Track; readonly maker: UnitMaker }> {
  const makers = new Map<number, { readonly track: Track; readonly maker: UnitMaker }>();
  for (const kind of ["video", "audio"] as const) {
    for (const track of tracks) {
      const maker = track.kind === kind ? unitMaker(track) : null;
      if (maker === null) continue;
      makers.set(track.id, { track, maker });
      break;
    }
  }
  return makers;
}

/** Most that is read until tracks have shown their codec data, bytes: some pictures of a high rate. */
const MAX_LOOK_BYTES = 4 * 1024 * 1024;
/** Pictures in which captions are looked for. */
const CAPTION_PICTURES = 50;

/**
 * What the beginning of a segment of MPEG TS shows of `tracks`, by PID, and the captions in its pictures. Rejects as the segment
 * does.
 */
export async function describeTracks(
  segment: AsyncIterable<Uint8Array>,
  tracks: readonly Track[],
  signal: AbortSignal,
): Promise<{ readonly known: ReadonlyMap<number, Track>; readonly captions: readonly string[] }> {
  const makers = new Map(tracks.flatMap((track) => {
    const maker = unitMaker(track);
    return maker === null ? [] : [[track.id, maker] as const];
  }));
  const video = tracks.find(({ kind }) => kind === "video");
  const captions = new CaptionFinder();
  let pictures = 0;
  const reader = new PesReader(tracks.map(({ id }) => id), 0);
  let bytes = 0;
  for await (const chunk of segment) {
    for (const pes of reader.push(chunk)) {
      makers.get(pes.pid)?.push(pes);
      makers.get(pes.pid)?.take(false);
      if (pes.pid === video?.id && pictures++ < CAPTION_PICTURES) captions.push(pes.body);
    }
    bytes += chunk.length;
    const areKnown = [...makers.values()].every(({ track }) => track !== null);
    if (bytes >= MAX_LOOK_BYTES || (areKnown && pictures >= CAPTION_PICTURES)) break;
    if (isTurnDue()) await turnWhenDue(signal);
  }
  const known = [...makers].flatMap(([pid, { track }]) => track === null ? [] : [[pid, track] as const]);
  return { known: new Map(known), captions: captions.found };
}

/**
 * The form of a segment of MPEG TS with these `tracks`, the sound that is wanted before others; it reads no further than it
 * needs. Throws `unsupported_media` when there are pictures, and none can be carried, or nothing at all can.
 */
export async function liveForm(
  segment: AsyncIterable<Uint8Array>,
  tracks: readonly Track[],
  signal: AbortSignal,
): Promise<LiveForm> {
  const makers = makersOf(tracks);
  const hasPictures = tracks.some(({ kind }) => kind === "video");
  if (makers.size > 0 && hasPictures === [...makers.values()].some(({ track }) => track.kind === "video")) {
    const reader = new PesReader([...makers.keys()], 0);
    const push = (all: readonly Pes[]) => {
      for (const pes of all) makers.get(pes.pid)!.maker.push(pes);
      return [...makers.values()].every(({ maker }) => maker.track !== null);
    };
    let isKnown = false;
    for await (const chunk of segment) {
      isKnown = push(reader.push(chunk));
      if (isKnown) break;
      if (isTurnDue()) await turnWhenDue(signal);
    }
    if (!isKnown) push(reader.finish());
  }
  const streams: CmafStream[] = [];
  for (const { maker } of makers.values()) {
    const { track } = maker;
    const format = track === null ? null : cmafFormat(track);
    if (track === null || format === null) continue;
    streams.push({ ...format, track, trackIndex: track.id, id: streams.length + 1 });
  }
  if (streams.length === 0 || hasPictures !== (streams[0]!.track.kind === "video")) {
    const codecs = tracks.map(({ codec, codecId }) => codec === "other" ? codecId : codec).join(", ");
    const advice = "leave playlist_output_format_live out, and it is MPEG TS";
    throw new MillraceError("unsupported_media", `fragmented MP4 cannot carry this broadcast (${codecs}): ${advice}`);
  }
  return { streams, init: initSegment(streams), codecs: streams.map(({ codecs }) => codecs) };
}

/** A segment that is to be made. */
export interface LiveFragmentOptions {
  readonly number: number;
  /** Its beginning on a clock that does not wrap, 90 kHz. */
  readonly start90k: number;
  readonly durationMs: number;
  /** MPEG TS of the segment after it, which begins with sound of this one's time; null: there is none, or it does not continue. */
  readonly following: AsyncIterable<Uint8Array> | null;
  /** Its sound belongs to pictures in other segments, and has their times. Default false. */
  readonly isBesidePictures?: boolean;
}

/**
 * The segment of MPEG TS with these `tracks` in `form`, which is that of an earlier segment or its own. Beside pictures it has the
 * sound of their time: in MPEG TS that comes later, and players would run dry at the end of each segment.
 */
export async function* liveFragments(
  segment: AsyncIterable<Uint8Array>,
  tracks: readonly Track[],
  { streams }: LiveForm,
  { number, start90k, durationMs, following, isBesidePictures = false }: LiveFragmentOptions,
  signal: AbortSignal,
  buffers?: ChunkBuffers,
): AsyncGenerator<Uint8Array> {
  const makers = new Map(streams.flatMap(({ track: { id } }) => {
    const track = tracks.find((one) => one.id === id);
    const maker = track === undefined ? null : unitMaker(track);
    return maker === null ? [] : [[id, maker] as const];
  }));
  const reader = new PesReader([...makers.keys()], start90k);
  const sink = new PacketSink(buffers);
  const slot = new FragmentSlot(
    streams,
    {
      run: number % NUMBERS,
      sizeBytes: null,
      timedFragments: timedFragments(durationMs * 90),
      endDts90k: null,
      fileEnd90k: Infinity,
      offset90k: 0,
    },
    sink,
  );
  const end90k = start90k + Math.round(durationMs * 90);
  const main = streams[0]!.track;
  const isBounded = main.kind === "video" || isBesidePictures;
  const isSound = (id: number) => main.kind !== "video" || id !== main.id;
  let isWhole = !isBounded;
  const add = (unit: RunSample) => {
    if (isBounded && isSound(unit.track)) {
      isWhole ||= unit.dts90k >= end90k;
      if (unit.dts90k < start90k || unit.dts90k >= end90k) return;
    }
    slot.push(unit);
  };
  const push = (all: readonly Pes[]) => {
    // Units in the order in which they come, however the segment is chunked.
    for (const pes of all) {
      const maker = makers.get(pes.pid)!;
      maker.push(pes);
      for (const unit of maker.take(false)) add(unit);
    }
    slot.keep();
  };
  try {
    for await (const chunk of segment) {
      push(reader.push(chunk));
      yield* sink.take();
      if (isTurnDue()) await turnWhenDue(signal);
    }
    push(reader.finish());
    for (const maker of makers.values()) for (const unit of maker.take(true)) add(unit);
    const sounds = [...makers.keys()].filter(isSound);
    if (following !== null && !isWhole && sounds.length > 0) {
      const more = new PesReader(sounds, end90k);
      for await (const chunk of following) {
        push(more.push(chunk));
        if (isWhole) break;
        if (isTurnDue()) await turnWhenDue(signal);
      }
      if (!isWhole) push(more.finish());
    }
    slot.finish();
    yield* sink.take();
  } finally {
    sink.close();
  }
}
