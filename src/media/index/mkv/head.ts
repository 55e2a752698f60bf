/** Reads the part of a Matroska file before its clusters, and its Cues wherever they are. Fetches nothing else. */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import { ByteWindow } from "../../source/byte-window.ts";
import { type RawCue, readCues } from "./cue-list.ts";
import {
  children,
  type ElementBudget,
  type ElementHeader,
  float,
  MAX_HEADER_BYTES,
  readHeader,
  text,
  uint,
} from "./ebml.ts";
import { ID, SEGMENT_CHILDREN } from "./ids.ts";
import { type MatroskaTrack, readTrack } from "./tracks.ts";

/** An entry of the Cues, converted from the file's units. */
export interface MatroskaCue {
  readonly timeNs: number;
  readonly trackNumber: number;
  /** Source position of the cluster. */
  readonly clusterAt: number;
  /** Position of the block after the cluster's header; null when the file does not say. */
  readonly blockAt: number | null;
}

/** The file's head. */
export interface MatroskaHead {
  readonly timestampScaleNs: number;
  /** null when the file does not say. */
  readonly durationNs: number | null;
  readonly tracks: readonly MatroskaTrack[];
  /** By position, for all tracks; empty when there are none or they cannot be read. */
  readonly cues: readonly MatroskaCue[];
  /** Source position of the first cluster. */
  readonly firstClusterAt: number;
  /** Source positions of the elements that SeekHead names. */
  readonly elementsAt: readonly number[];
  /** Where its attachments may be: the beginning of their element, as the file names it; null: it has none. */
  readonly attachmentsAt: number | null;
  /** Where another film begins in the same file; null if none follows. */
  readonly endsAt: number | null;
  readonly warnings: readonly string[];
}

/** First read, bytes: heads of usual files fit, and a swarm fetches whole pieces anyway. */
const HEAD_CHUNK_BYTES = 8192;
/** The ID of an EBML header. */
const EBML_ID_BYTES = 4;
/** Largest Info, SeekHead or Tracks, bytes. Tracks of subtitled films with fonts in their codec data stay under 1 MiB. */
const MAX_MASTER_BYTES = 2 * 1024 * 1024;
/** Larger or smaller ones, bytes: a day of 2-second groups for 6 tracks; a SeekHead names ten elements. */
const MAX_BYTES: ReadonlyMap<number, number> = new Map([[ID.CUES, 8 * 1024 * 1024], [ID.SEEK_HEAD, 64 * 1024]]);
/** Most elements walked before the first cluster. */
const MAX_HEAD_ELEMENTS = 1000;
/** Most elements read inside Info, SeekHead and Tracks together: a track has about 40. */
const MAX_FIELDS = 20_000;
/** Tracks beyond are ignored: films with a subtitle in every language have 70. Each counts in the bounds of every run. */
const MAX_TRACKS = 128;
/** Largest TimestampScale, ns: a second. Larger ones count as damage. */
const MAX_SCALE_NS = 1e9;
/** A file with fewer bytes per second than this has a wrong Duration: one black picture per second takes as much. */
const LEAST_BYTES_PER_S = 50;

/** Elements that a SeekHead is trusted to name. */
const NAMED: ReadonlySet<number> = new Set([...SEGMENT_CHILDREN].filter((id) => id !== ID.CLUSTER));

interface State {
  timestampScaleNs: number;
  duration: number | null;
  tracks: MatroskaTrack[];
  cues: readonly RawCue[];
  /** Targets of SeekHead, relative to the segment: element ID → position. */
  readonly seeks: Map<number, number>;
  readonly done: Set<number>;
  readonly budget: ElementBudget;
  readonly signal: AbortSignal;
}

function readSeekHead(data: Uint8Array, state: State): void {
  for (const seek of children(data, state.budget)) {
    if (seek.id !== ID.SEEK) continue;
    let id = 0;
    let position = -1;
    for (const field of children(seek.data, state.budget)) {
      if (field.id === ID.SEEK_ID) id = uint(field.data);
      else if (field.id === ID.SEEK_POSITION) position = uint(field.data);
    }
    if (position >= 0 && NAMED.has(id) && !state.seeks.has(id)) state.seeks.set(id, position);
  }
}

function readInfo(data: Uint8Array, state: State): void {
  for (const { id, data: value } of children(data, state.budget)) {
    if (id === ID.TIMESTAMP_SCALE) {
      const scaleNs = uint(value);
      if (scaleNs > 0 && scaleNs <= MAX_SCALE_NS) state.timestampScaleNs = scaleNs;
    } else if (id === ID.DURATION) state.duration = float(value);
  }
}

async function take(id: number, data: Uint8Array, state: State): Promise<void> {
  if (id === ID.SEEK_HEAD) readSeekHead(data, state);
  else if (state.done.has(id)) return;
  else if (id === ID.INFO) readInfo(data, state);
  else if (id === ID.CUES) state.cues = await readCues(data, state.signal);
  else if (id === ID.TRACKS) {
    for (const entry of children(data, state.budget)) {
      const track = entry.id === ID.TRACK_ENTRY ? readTrack(entry.data, state.budget) : null;
      if (track !== null && state.tracks.length < MAX_TRACKS) state.tracks.push(track);
    }
  }
  state.done.add(id);
}

const WANTED: ReadonlySet<number> = new Set([ID.SEEK_HEAD, ID.INFO, ID.TRACKS, ID.CUES]);

async function headerAt(window: ByteWindow): Promise<ElementHeader | null> {
  await window.need(MAX_HEADER_BYTES);
  const header = readHeader(window.bytes, window.at, window.bytes.length);
  return typeof header === "string" ? null : header;
}

/** The payload of the element whose header is at the window's position; null when too large, open or cut off. */
async function payload(window: ByteWindow, header: ElementHeader): Promise<Uint8Array | null> {
  const limit = MAX_BYTES.get(header.id) ?? MAX_MASTER_BYTES;
  if (header.sizeBytes === null || header.sizeBytes > limit) return null;
  const headerBytes = header.body - window.at;
  if (!await window.need(headerBytes + header.sizeBytes)) return null;
  const start = window.at + headerBytes;
  return window.bytes.subarray(start, start + header.sizeBytes);
}

async function openSegment(window: ByteWindow): Promise<{ start: number; end: number }> {
  const bad = (message: string) => new MillraceError("bad_media", message);
  const ebml = await headerAt(window);
  if (ebml === null || ebml.id !== ID.EBML || ebml.sizeBytes === null) throw bad("no EBML header: not a Matroska file");
  const data = await payload(window, ebml);
  if (data === null) throw bad("the EBML header is damaged");
  for (const field of children(data, { left: MAX_FIELDS })) {
    if (field.id !== ID.DOC_TYPE) continue;
    const type = text(field.data);
    if (type !== "matroska" && type !== "webm") {
      throw new MillraceError("unsupported_media", `EBML document of type ${type}`);
    }
  }
  window.at += ebml.body - window.at + ebml.sizeBytes;
  for (let i = 0; i < MAX_HEAD_ELEMENTS; i++) {
    const header = await headerAt(window);
    if (header === null) break;
    window.at = header.body;
    const start = window.position;
    if (header.id === ID.SEGMENT) {
      return { start, end: header.sizeBytes === null ? Infinity : start + header.sizeBytes };
    }
    if (header.sizeBytes === null) break;
    window.seek(start + header.sizeBytes);
  }
  throw bad("the Matroska file has no segment");
}

/**
 * Reads the elements that SeekHead points to and the walk did not meet. If they are missing or damaged, that is no error.
 */
async function followSeeks(source: ByteSource, segmentStart: number, state: State, signal: AbortSignal): Promise<void> {
  // A second SeekHead (older writers put one at the end) may name the Cues.
  for (const id of [ID.SEEK_HEAD, ID.INFO, ID.TRACKS, ID.CUES]) {
    const position = state.seeks.get(id);
    if (position === undefined || (id !== ID.SEEK_HEAD && state.done.has(id))) continue;
    const at = segmentStart + position;
    if (at + MAX_HEADER_BYTES >= source.sizeBytes) continue;
    const window = new ByteWindow(source, at, { chunkBytes: HEAD_CHUNK_BYTES, joinedBytes: HEAD_CHUNK_BYTES, signal });
    const header = await headerAt(window);
    if (header === null || header.id !== id) continue;
    const data = await payload(window, header);
    if (data !== null) await take(id, data, state);
  }
}

/** Whether another Matroska file begins at `end`. */
async function isFollowed(source: ByteSource, end: number, signal: AbortSignal): Promise<boolean> {
  if (end + EBML_ID_BYTES > source.sizeBytes) return false;
  const bytes = await source.read(end, EBML_ID_BYTES, { signal });
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0) === ID.EBML;
}

/** Whether a file of `sizeBytes` can last this long. */
export function isPlausible(durationNs: number, sizeBytes: number): boolean {
  return durationNs <= sizeBytes / LEAST_BYTES_PER_S * 1e9;
}

/** Reads the head. Rejects with `bad_media` when the file is no Matroska or has no tracks, or as the source does. */
export async function readHead(source: ByteSource, signal: AbortSignal): Promise<MatroskaHead> {
  const window = new ByteWindow(source, 0, { chunkBytes: HEAD_CHUNK_BYTES, joinedBytes: HEAD_CHUNK_BYTES, signal });
  const segment = await openSegment(window);
  const state: State = {
    timestampScaleNs: 1_000_000,
    duration: null,
    tracks: [],
    cues: [],
    seeks: new Map(),
    done: new Set(),
    budget: { left: MAX_FIELDS },
    signal,
  };
  let firstClusterAt = -1;
  let attachmentsAt: number | null = null;
  for (let i = 0; i < MAX_HEAD_ELEMENTS && window.position < segment.end; i++) {
    const header = await headerAt(window);
    if (header === null) break;
    if (header.id === ID.CLUSTER) {
      firstClusterAt = window.position;
      break;
    }
    if (header.sizeBytes === null) break;
    if (header.id === ID.ATTACHMENTS) attachmentsAt ??= window.position;
    const bodyAt = window.position + header.body - window.at;
    if (WANTED.has(header.id) && (header.id === ID.SEEK_HEAD || !state.done.has(header.id))) {
      const data = await payload(window, header);
      if (data !== null) await take(header.id, data, state);
    }
    window.seek(bodyAt + header.sizeBytes);
  }
  if (firstClusterAt < 0) throw new MillraceError("bad_media", "the Matroska file has no cluster");
  await followSeeks(source, segment.start, state, signal);
  if (state.tracks.length === 0) throw new MillraceError("bad_media", "the Matroska file has no tracks");
  const scale = state.timestampScaleNs;
  const cues = state.cues
    .map((cue) => ({
      timeNs: cue.time * scale,
      trackNumber: cue.trackNumber,
      clusterAt: segment.start + cue.cluster,
      blockAt: cue.blockAt,
    }))
    .filter((cue) => cue.clusterAt >= firstClusterAt && cue.clusterAt < source.sizeBytes);
  const warnings: string[] = [];
  let durationNs = state.duration !== null && state.duration > 0 ? state.duration * scale : null;
  if (durationNs !== null && !isPlausible(durationNs, source.sizeBytes)) {
    warnings.push("the file states a duration far too long for its size: it is ignored");
    durationNs = null;
  }
  if (Number.isFinite(segment.end) && segment.end > source.sizeBytes) warnings.push("the file is cut off at its end");
  const elementsAt = [...state.seeks.values()].map((position) => segment.start + position);
  const namedAt = state.seeks.get(ID.ATTACHMENTS);
  if (namedAt !== undefined) attachmentsAt ??= segment.start + namedAt;
  const isJoined = await isFollowed(source, segment.end, signal);
  if (isJoined) warnings.push("another film follows in the same file: it is left out");
  const endsAt = isJoined ? segment.end : null;
  return {
    timestampScaleNs: scale,
    durationNs,
    tracks: state.tracks,
    cues,
    firstClusterAt,
    elementsAt,
    attachmentsAt,
    endsAt,
    warnings,
  };
}
