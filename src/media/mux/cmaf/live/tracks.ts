/** Access units of fragmented MP4 from the PES packets of one stream, and the track that they show. */
import { ac3Frame } from "../../../../bytes/ac3-frames.ts";
import { AAC_SAMPLE_RATES, adtsFrame, type AudioFrame, type AudioFrameSyntax } from "../../../../bytes/audio-frames.ts";
import { concatBytes } from "../../../../bytes/hex.ts";
import { unitsOfByteStream } from "../../../../bytes/nal-units.ts";
import { configOf, type NalCodec, setsIn, typeOf } from "../../../codec/parameter-sets.ts";
import { sequenceFacts } from "../../../codec/sequence-facts.ts";
import type { RunSample } from "../../../model/timeline.ts";
import type { Track } from "../../../model/types.ts";
import { ac3Config, eac3Config } from "../../../codec/ac3-config.ts";
import type { Pes } from "./pes-reader.ts";

/** Most NAL units of a picture: real ones have dozens of slices. */
const MAX_NALS = 4096;
/** Most bytes of sound without a frame that are kept. */
const MAX_REST_BYTES = 64 * 1024;

/** Turns the PES packets of one stream into access units. */
export interface UnitMaker {
  /** The track with its codec data, once a unit has shown it. */
  readonly track: Track | null;
  push(pes: Pes): void;
  /** The units that are complete; `atEnd`: the others, too. */
  take(atEnd: boolean): RunSample[];
}

/** What makes units of `source`, whose samples have its PID as their track; null where fragmented MP4 carries none of its codec. */
export function unitMaker(source: Track): UnitMaker | null {
  switch (source.codec) {
    case "h264":
    case "hevc":
      return new PictureMaker(source, source.codec);
    case "aac":
      return source.codecId === LATM ? null : new SoundMaker(source, adtsFrame, adtsForm);
    case "ac3":
    case "eac3":
      return new SoundMaker(source, ac3Frame, dolbyForm(source.codec));
    default:
      return null;
  }
}

/** AAC in LATM, by its stream type. */
const LATM = "0x11";

/** NAL units that MP4 has no use for: delimiters, ends of a sequence or stream, filling. */
const LEFT_OUT = { h264: new Set([9, 10, 11, 12]), hevc: new Set([35, 36, 37, 38]) };
/** Random access points: IDR pictures of H.264, all IRAP pictures of HEVC. */
const isAccess = (codec: NalCodec, type: number) => codec === "h264" ? type === 5 : type >= 16 && type <= 21;

interface Picture {
  readonly pts90k: number;
  readonly dts90k: number;
  readonly keyframe: boolean;
  readonly parts: Uint8Array[];
}

class PictureMaker implements UnitMaker {
  track: Track | null = null;
  readonly #source: Track;
  readonly #codec: NalCodec;
  /** The newest picture: what follows without a time belongs to it. */
  #open: Picture | null = null;
  #ready: RunSample[] = [];
  /** The parameter sets in the sample entry. */
  #told: readonly Uint8Array[] = [];

  constructor(source: Track, codec: NalCodec) {
    this.#source = source;
    this.#codec = codec;
  }

  push({ pts90k, dts90k, isAccess: isMarked, body }: Pes): void {
    const units = unitsOfByteStream(body, MAX_NALS);
    if (this.track === null) this.#describe(units);
    const types = units.map((unit) => typeOf(this.#codec, unit));
    const kept = units.filter((unit, i) => !LEFT_OUT[this.#codec].has(types[i]!) && !this.#isTold(unit));
    const parts = kept.flatMap((unit) => [lengthOf(unit), unit]);
    if (pts90k === null) {
      this.#open?.parts.push(...parts);
      return;
    }
    this.#close();
    const keyframe = isMarked || types.some((type) => isAccess(this.#codec, type));
    this.#open = { pts90k, dts90k: dts90k ?? pts90k, keyframe, parts };
  }

  take(atEnd: boolean): RunSample[] {
    if (atEnd) this.#close();
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  #close(): void {
    if (this.#open !== null && this.#open.parts.length > 0) {
      const { parts, ...unit } = this.#open;
      this.#ready.push({ ...unit, track: this.#source.id, data: concatBytes(parts) });
    }
    this.#open = null;
  }

  /** Sets that changed stay where they are: a segment has one sample entry. */
  #isTold(unit: Uint8Array): boolean {
    return this.#told.some((set) => set.length === unit.length && set.every((byte, i) => byte === unit[i]));
  }

  #describe(units: readonly Uint8Array[]): void {
    const sets = setsIn(this.#codec, units);
    const codecPrivate = configOf(this.#codec, sets, LENGTH_BYTES);
    if (codecPrivate === null) return;
    const { width, height } = sequenceFacts(this.#codec, sets[this.#codec === "h264" ? 0 : 1]![0]!);
    if (width > MAX_SIZE || height > MAX_SIZE) return;
    this.#told = sets.flat().map((set) => set.slice());
    this.track = { ...this.#source, codecPrivate, width, height };
  }
}

/** Bytes of the lengths before NAL units. */
const LENGTH_BYTES = 4;
/** Largest width and height that a sample entry states. */
const MAX_SIZE = 0xffff;

function lengthOf({ length }: Uint8Array): Uint8Array {
  return Uint8Array.of(length >>> 24, (length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff);
}

/** What a frame says of its track, and where its access unit begins in it. */
interface SoundForm {
  readonly headerBytes: number;
  readonly codecPrivate: Uint8Array | null;
}

type FormOf = (frame: Uint8Array, header: AudioFrame) => SoundForm;

const adtsForm: FormOf = (frame, { sampleRate, kind }) => {
  const rate = AAC_SAMPLE_RATES.indexOf(sampleRate);
  const channels = ((frame[2]! & 1) << 2) | (frame[3]! >> 6);
  return {
    headerBytes: (frame[1]! & 1) === 1 ? 7 : 9,
    // AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1).
    codecPrivate: Uint8Array.of((kind << 3) | (rate >> 1), ((rate & 1) << 7) | (channels << 3)),
  };
};

const dolbyForm = (codec: "ac3" | "eac3"): FormOf => (frame) => ({
  headerBytes: 0,
  codecPrivate: codec === "ac3" ? ac3Config(frame) : eac3Config(frame),
});

class SoundMaker implements UnitMaker {
  track: Track | null = null;
  readonly #source: Track;
  readonly #syntax: AudioFrameSyntax;
  readonly #formOf: FormOf;
  #rest: Uint8Array = new Uint8Array(0);
  /** Time of the frame with which the rest begins; null: not known. */
  #next90k: number | null = null;
  #ready: RunSample[] = [];

  constructor(source: Track, syntax: AudioFrameSyntax, formOf: FormOf) {
    this.#source = source;
    this.#syntax = syntax;
    this.#formOf = formOf;
  }

  push({ pts90k, body }: Pes): void {
    // The time of a PES packet is that of the first frame that begins in it.
    let timedFrom = pts90k === null ? Infinity : this.#rest.length;
    const bytes = this.#rest.length === 0 ? body : concatBytes([this.#rest, body]);
    let at = 0;
    while (at < bytes.length) {
      const header = this.#syntax(bytes, at);
      if (header === null) {
        if (bytes.length - at <= MIN_HEADER_BYTES) break;
        at++;
        continue;
      }
      if (at + header.sizeBytes > bytes.length) break;
      if (at >= timedFrom) {
        this.#next90k = pts90k;
        timedFrom = Infinity;
      }
      this.#add(bytes.subarray(at, at + header.sizeBytes), header);
      at += header.sizeBytes;
    }
    if (at >= timedFrom && pts90k !== null) this.#next90k = pts90k;
    this.#rest = bytes.slice(Math.max(at, bytes.length - MAX_REST_BYTES));
  }

  take(_atEnd: boolean): RunSample[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  #add(frame: Uint8Array, header: AudioFrame): void {
    if (this.#next90k === null) return;
    const { headerBytes, codecPrivate } = this.#formOf(frame, header);
    const { sampleRate, channels, samples } = header;
    if (this.track === null && codecPrivate !== null) {
      this.track = { ...this.#source, codecPrivate, sampleRate, channels: channels || null };
    }
    const time90k = Math.round(this.#next90k);
    const data = frame.subarray(headerBytes);
    this.#ready.push({ track: this.#source.id, pts90k: time90k, dts90k: time90k, keyframe: true, data });
    this.#next90k += samples * 90_000 / sampleRate;
  }
}

/** Fewer bytes may be the beginning of a header. */
const MIN_HEADER_BYTES = 16;
