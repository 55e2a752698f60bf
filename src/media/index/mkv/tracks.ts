/** TrackEntry → Track, with the extra facts needed to read blocks. */
import type { Codec, Colours, DolbyVision, Track } from "../../model/types.ts";
import { readDolbyVision } from "../../codec/dolby-vision.ts";
import { aacConfig, codecOf, usualSamples } from "./codecs.ts";
import { children, type ElementBudget, float, text, uint } from "./ebml.ts";
import { type FramePacking, readEncodings, unpacked } from "./encodings.ts";
import { ID } from "./ids.ts";

/** A track of a Matroska file. */
export interface MatroskaTrack extends FramePacking {
  readonly track: Track;
  /** Time between access units, ns; null when the file does not say. */
  readonly defaultDurationNs: number | null;
  /** The same, measured at the start of the media if the head does not say. */
  readonly measuredDurationNs?: number;
  /** Time between the frames of a laced block, ns; null when unknown. */
  readonly laceDurationNs: number | null;
  /** The codec of a track that lacks the data for a decoder, which may be in the media. Absent: `track` says everything. */
  readonly unsure?: { readonly codec: "h264" | "hevc"; readonly codecId: string };
}

/** Longest name of a track that is kept, characters. */
const MAX_NAME = 100;

/** Sample rates of sound, Hz: twice the highest in use. Others are damage and are replaced by Matroska's default. */
function plausibleRate(hertz: number): number {
  return hertz >= 1 && hertz <= 1_536_000 ? Math.round(hertz) : 8000;
}

/** Clockwise turn of a picture that stands upright in the scene, degrees: ProjectionPoseRoll is anticlockwise. */
function readRotation(projection: Uint8Array, budget: ElementBudget): number {
  for (const { id, data } of children(projection, budget)) {
    if (id !== ID.PROJECTION_POSE_ROLL) continue;
    const degrees = float(data);
    return Number.isFinite(degrees) && Math.abs(degrees) <= 180 ? (Math.round(-degrees) + 360) % 360 : 0;
  }
  return 0;
}

/** Code points of the colours; null where the transfer is not stated. */
function readColours(colour: Uint8Array, budget: ElementBudget): Colours | null {
  const told = new Map([...children(colour, budget)].map(({ id, data }) => [id, data.length > 2 ? 2 : uint(data)]));
  const of = (id: number) => told.get(id) ?? UNKNOWN_COLOUR;
  const transfer = of(ID.COLOUR_TRANSFER);
  if (transfer === UNKNOWN_COLOUR) return null;
  const isFullRange = told.get(ID.COLOUR_RANGE) === FULL_RANGE;
  return { primaries: of(ID.COLOUR_PRIMARIES), transfer, matrix: of(ID.COLOUR_MATRIX), isFullRange };
}

const UNKNOWN_COLOUR = 2;
const FULL_RANGE = 2;

/** Types of the mapping that carries Dolby Vision's configuration: "dvcC" and "dvvC". */
const DOLBY_VISION_TYPES: ReadonlySet<number> = new Set([0x64766343, 0x64767643]);

function readMapping(mapping: Uint8Array, budget: ElementBudget): DolbyVision | null {
  let type = 0;
  let extra: Uint8Array = new Uint8Array(0);
  for (const { id, data } of children(mapping, budget)) {
    if (id === ID.BLOCK_ADD_ID_TYPE) type = uint(data);
    else if (id === ID.BLOCK_ADD_ID_EXTRA_DATA) extra = data;
  }
  return DOLBY_VISION_TYPES.has(type) ? readDolbyVision(extra) : null;
}

const KINDS: Readonly<Record<number, Track["kind"]>> = { 1: "video", 2: "audio", 17: "subtitle" };

function needsConfig(codec: Codec, config: Uint8Array | null): boolean {
  if (codec === "h264") return config === null || config.length < 7 || config[0] !== 1;
  // Some writers left the version at 0 while the format was a draft.
  if (codec === "hevc") return config === null || config.length < 23 || config[0]! > 1;
  return codec === "aac" && (config === null || config.length < 2);
}

/**
 * Reads a TrackEntry, parsing no more elements than `budget` allows; null when it has no usable number. Tracks that
 * cannot be unpacked get the codec `other`.
 */
export function readTrack(entry: Uint8Array, budget: ElementBudget): MatroskaTrack | null {
  const fields = new Map<number, Uint8Array>();
  let dolbyVision: DolbyVision | null = null;
  for (const { id, data } of children(entry, budget)) {
    fields.set(id, data);
    if (id === ID.BLOCK_ADDITION_MAPPING) dolbyVision ??= readMapping(data, budget);
  }
  const number = (id: number, otherwise: number) => {
    const data = fields.get(id);
    return data === undefined ? otherwise : uint(data);
  };
  const string = (id: number) => {
    const data = fields.get(id);
    return data === undefined ? null : text(data);
  };
  const trackNumber = number(ID.TRACK_NUMBER, 0);
  if (trackNumber === 0) return null;
  const kind = KINDS[number(ID.TRACK_TYPE, 0)] ?? "other";
  let codecId = string(ID.CODEC_ID) ?? "";
  let codec = codecOf(codecId);
  const encoding = readEncodings(fields.get(ID.CONTENT_ENCODINGS) ?? new Uint8Array(0), budget);
  const asStored = fields.get(ID.CODEC_PRIVATE)?.slice() ?? null;
  let codecPrivate = asStored !== null && encoding.isPrivateDeflated ? unpacked(asStored) : asStored;
  const numbers = {
    width: null as number | null,
    height: null as number | null,
    rate: 8000,
    channels: 1,
    depth: null as number | null,
    rotation: 0,
    colours: null as Colours | null,
  };
  for (const { id, data } of children(fields.get(ID.VIDEO) ?? new Uint8Array(0), budget)) {
    if (id === ID.PIXEL_WIDTH) numbers.width = uint(data);
    else if (id === ID.PIXEL_HEIGHT) numbers.height = uint(data);
    else if (id === ID.COLOUR) numbers.colours = readColours(data, budget);
    else if (id === ID.PROJECTION) numbers.rotation = readRotation(data, budget);
  }
  for (const { id, data } of children(fields.get(ID.AUDIO) ?? new Uint8Array(0), budget)) {
    if (id === ID.SAMPLING_FREQUENCY) numbers.rate = plausibleRate(float(data));
    else if (id === ID.CHANNELS) numbers.channels = uint(data) || 1;
    else if (id === ID.BIT_DEPTH) numbers.depth = uint(data) || null;
  }
  if (codec === "aac" && (codecPrivate === null || codecPrivate.length < 2)) {
    codecPrivate = aacConfig(codecId, numbers.rate, numbers.channels);
  }
  const problem = encoding.problem ?? (needsConfig(codec, codecPrivate) ? "without codec data" : null);
  const unsure = encoding.problem === null && problem !== null && (codec === "h264" || codec === "hevc")
    ? { codec, codecId }
    : null;
  if (problem !== null && (codec !== "other" || kind === "subtitle")) {
    codec = "other";
    codecId = `${codecId} (${problem})`;
  }
  const language = string(ID.LANGUAGE_BCP47) ?? string(ID.LANGUAGE) ?? "eng";
  const defaultDuration = number(ID.DEFAULT_DURATION, 0);
  const defaultDurationNs = defaultDuration > 0 && defaultDuration <= 60e9 ? defaultDuration : null;
  const audio = kind === "audio";
  const name = string(ID.NAME)?.slice(0, MAX_NAME) ?? "";
  return {
    track: {
      id: trackNumber,
      kind,
      codec,
      codecId,
      language: language === "und" || language === "" ? null : language,
      isDefault: number(ID.FLAG_DEFAULT, 1) !== 0,
      codecPrivate,
      width: numbers.width,
      height: numbers.height,
      sampleRate: audio ? numbers.rate : null,
      channels: audio ? numbers.channels : null,
      // Decoders of PCM and True Audio know it from nowhere else.
      ...(codec === "pcm" || codecId === "A_TTA1" ? { bitDepth: numbers.depth } : {}),
      ...(name === "" ? {} : { name }),
      ...(kind === "subtitle" && number(ID.FLAG_FORCED, 0) !== 0 ? { isForced: true } : {}),
      ...(number(ID.FLAG_HEARING_IMPAIRED, 0) !== 0 ? { isForHearingImpaired: true } : {}),
      ...(number(ID.FLAG_VISUAL_IMPAIRED, 0) !== 0 ? { isForVisuallyImpaired: true } : {}),
      ...(number(ID.FLAG_COMMENTARY, 0) !== 0 ? { isCommentary: true } : {}),
      ...(numbers.rotation === 0 ? {} : { rotationDegrees: numbers.rotation }),
      ...(numbers.colours === null ? {} : { colours: numbers.colours }),
      ...(kind === "video" && defaultDurationNs !== null ? { frameRate: 1e9 / defaultDurationNs } : {}),
      ...(dolbyVision === null ? {} : { dolbyVision }),
    },
    defaultDurationNs,
    laceDurationNs: defaultDurationNs ??
      (audio ? usualSamples(codec, codecId, numbers.rate) * 1e9 / numbers.rate : null),
    strippedHeader: encoding.strippedHeader,
    isDeflated: encoding.isDeflated,
    ...(unsure === null ? {} : { unsure }),
  };
}
