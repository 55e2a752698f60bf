/** Counts what a transport stream holds, whoever made it: access units by PID. */
import { ac3Frame } from "../../bytes/ac3-frames.ts";
import { adtsFrame, type AudioFrameSyntax, frameChain, mpegAudioFrame } from "../../bytes/audio-frames.ts";
import { concatBytes } from "../../bytes/hex.ts";
import { PAT_PID, STREAM_TYPE } from "../../bytes/ts/codes.ts";
import { PACKET_BYTES, payloadOf, pidOf, readPesHeader, startsUnit } from "../../bytes/ts/packet.ts";
import { type MapStream, readPat, readPmt, SectionAssembler } from "../../bytes/ts/psi.ts";
import { stepBetween } from "../../bytes/ts/stamps.ts";
import { TsResync } from "../../bytes/ts/resync.ts";

/** Frames that a PES of sound may have: it has 64 KiB at most. */
const MAX_FRAMES = 16_384;

/** What was counted of one stream. */
export interface UnitCount {
  readonly id: number;
  /** Pictures, or frames of sound; PES where frames cannot be told apart. */
  readonly units: number;
  /** Earliest and latest presentation time, 90 kHz, counted on where the clock wraps; null: it has no times. */
  readonly first90k: number | null;
  readonly last90k: number | null;
}

/** Times of a stream, however often its clock wraps. */
export class TimeSpan {
  #last: { readonly raw: number; readonly whole: number } | null = null;
  first90k: number | null = null;
  last90k: number | null = null;

  /** Takes the next time, 33 bits or whole. */
  add(raw: number): void {
    const whole = this.#last === null ? raw : this.#last.whole + stepBetween(this.#last.raw, raw);
    this.#last = { raw, whole };
    this.first90k = Math.min(this.first90k ?? whole, whole);
    this.last90k = Math.max(this.last90k ?? whole, whole);
  }
}

/** The syntax of frames that fill whole PES; null: a PES is taken for one unit. */
function syntaxOf({ streamType }: MapStream): AudioFrameSyntax | null {
  switch (streamType) {
    case STREAM_TYPE.aac:
      return adtsFrame;
    case STREAM_TYPE.mpeg1Audio:
    case STREAM_TYPE.mpeg2Audio:
      return mpegAudioFrame;
    case STREAM_TYPE.ac3:
    case STREAM_TYPE.eac3:
      return ac3Frame;
    default:
      return null;
  }
}

interface Counted {
  readonly syntax: AudioFrameSyntax | null;
  readonly times: TimeSpan;
  units: number;
  /** The PES under way, if its frames are counted. */
  parts: Uint8Array[];
}

/** Push the bytes of a transport stream in order, then `finish`. */
export class TsUnits {
  readonly #resync = new TsResync();
  readonly #isMuxed: boolean;
  readonly #tables = new SectionAssembler();
  readonly #maps = new Map<number, SectionAssembler>();
  readonly #streams = new Map<number, Counted>();

  /** `isMuxed`: it is our muxer's, whose PES hold whole frames of sound. */
  constructor(isMuxed: boolean) {
    this.#isMuxed = isMuxed;
  }

  /** Takes the next bytes. */
  push(bytes: Uint8Array): void {
    for (const { packets } of this.#resync.push(bytes)) {
      for (let at = 0; at < packets.length; at += PACKET_BYTES) this.#take(packets, at);
    }
  }

  #take(packets: Uint8Array, at: number): void {
    const pid = pidOf(packets, at);
    const starts = startsUnit(packets, at);
    const payload = payloadOf(packets, at);
    if (pid === PAT_PID) {
      for (const section of this.#tables.push(payload, starts)) {
        for (const map of readPat(section).values()) {
          if (!this.#maps.has(map)) this.#maps.set(map, new SectionAssembler());
        }
      }
      return;
    }
    const map = this.#maps.get(pid);
    if (map !== undefined) {
      for (const section of map.push(payload, starts)) {
        for (const one of readPmt(section)?.streams ?? []) this.#learn(one);
      }
      return;
    }
    const stream = this.#streams.get(pid);
    if (stream === undefined || payload.length === 0) return;
    if (starts) {
      this.#close(stream);
      const pes = readPesHeader(payload);
      if (pes === null) return;
      if (pes.pts90k !== null) stream.times.add(pes.pts90k);
      if (stream.syntax === null) stream.units++;
      else stream.parts = [payload.slice(pes.body)];
    } else if (stream.parts.length > 0) stream.parts.push(payload.slice());
  }

  #learn(one: MapStream): void {
    if (this.#streams.has(one.pid)) return;
    const syntax = this.#isMuxed ? syntaxOf(one) : null;
    this.#streams.set(one.pid, { syntax, times: new TimeSpan(), units: 0, parts: [] });
  }

  #close(stream: Counted): void {
    if (stream.syntax === null || stream.parts.length === 0) return;
    const { frames } = frameChain(concatBytes(stream.parts), 0, stream.syntax, MAX_FRAMES);
    stream.units += Math.max(1, frames);
    stream.parts = [];
  }

  /** What was counted, in the order of the maps. */
  finish(): UnitCount[] {
    return [...this.#streams].map(([id, stream]) => {
      this.#close(stream);
      const { units, times: { first90k, last90k } } = stream;
      return { id, units, first90k, last90k };
    });
  }
}
