/** Radio: bare frames of AAC (ADTS) or MPEG audio as a transport stream, and the titles that Icecast puts between them. */
import {
  adtsFrame,
  AUDIO_HEADER_BYTES,
  type AudioFrame,
  type AudioFrameSyntax,
  frameChain,
  id3TagBytes,
  mpegAudioFrame,
} from "../../bytes/audio-frames.ts";
import { concatBytes } from "../../bytes/hex.ts";
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { MillraceError } from "../../errors.ts";
import {
  buildProgram,
  maxPesBytes,
  pesPackets,
  type Program,
  writeAccessUnit,
  writePsi,
} from "../../media/mux/ts/program.ts";
import { START_OFFSET_90K } from "../../media/mux/ts/timing.ts";
import type { Codec, Track } from "../../media/model/types.ts";

/** Frames of one stream in a row that make a beginning: chance has no three. */
const SURE_FRAMES = 3;
/** Frames of this long share a PES, 90 kHz: each has a PCR, and these may be a tenth of a second apart. */
const PES_90K = 7000;
/** Tables are repeated after so many PES, within half a second. */
const PES_PER_TABLES = 5;
/** Longest title, characters. */
const MAX_TITLE_CHARS = 300;
/** Longest block of titles, bytes: its length is a byte that counts sixteens. */
const TITLE_UNIT_BYTES = 16;

const SYNTAXES: readonly AudioFrameSyntax[] = [adtsFrame, mpegAudioFrame];

/** The syntax of the sound in `head`, wherever its first frame begins; null: it is something else. */
export function radioSyntax(head: Uint8Array): AudioFrameSyntax | null {
  const from = Math.min(id3TagBytes(head, 0), head.length);
  for (let at = from; at < head.length; at++) {
    for (const syntax of SYNTAXES) {
      if (frameChain(head, at, syntax, SURE_FRAMES).frames === SURE_FRAMES) return syntax;
    }
  }
  return null;
}

/** Makes the transport stream. Its clock counts the samples, so what is lost is missing from it. */
export class RadioMuxer {
  readonly #syntax: AudioFrameSyntax;
  #held = new Uint8Array();
  #first: AudioFrame | null = null;
  #program: Program | null = null;
  /** Time of sample 0, 90 kHz. */
  #zero90k = 0;
  #samples = 0;
  #counter = 0;
  #pesCount = 0;
  #isFound = false;

  constructor(syntax: AudioFrameSyntax) {
    this.#syntax = syntax;
  }

  /** The first frame of the next bytes is presented at `time90k`, not where those before it end. */
  continueAt(time90k: number): void {
    const { sampleRate } = this.#first ?? { sampleRate: 1 };
    this.#zero90k = time90k - START_OFFSET_90K - this.#samplesIn(0, this.#held.length) * 90_000 / sampleRate;
    this.#samples = 0;
  }

  /** Takes the next bytes; returns the packets that are complete. Throws `bad_media` where the format changes. */
  push(bytes: Uint8Array): Uint8Array {
    this.#held = concatBytes([this.#held, bytes]);
    const packets: Uint8Array[] = [];
    let at = 0;
    for (;;) {
      at += this.#lead(at);
      const frames = this.#frames(at);
      if (frames === null) break;
      packets.push(this.#write(at, frames.end));
      at = frames.end;
    }
    this.#held = this.#held.slice(at);
    return concatBytes(packets);
  }

  /** How many bytes at `at` are no frame: tags, and what is damaged. */
  #lead(at: number): number {
    const held = this.#held;
    const tag = id3TagBytes(held, at);
    if (tag > 0 && at + tag <= held.length) return tag;
    if (this.#isFound && this.#syntax(held, at) !== null) return 0;
    this.#isFound = false;
    /** The first place where more bytes are needed to decide. */
    let open: number | null = null;
    let from = at;
    for (; from + AUDIO_HEADER_BYTES <= held.length; from++) {
      const frame = this.#syntax(held, from);
      if (frame === null) continue;
      const { frames, end } = frameChain(held, from, this.#syntax, 2);
      this.#isFound = frames === 2 && end <= held.length;
      if (this.#isFound) return from - at;
      if (frames === 2 || from + frame.sizeBytes + AUDIO_HEADER_BYTES > held.length) open ??= from;
    }
    return (open ?? from) - at;
  }

  /** Where the frames at `at` end that make a PES; null: they are not all here yet. */
  #frames(at: number): { readonly end: number } | null {
    if (!this.#isFound) return null;
    let end = at;
    for (let samples = 0;;) {
      const frame = this.#syntax(this.#held, end);
      if (frame === null) {
        if (this.#held.length - end < AUDIO_HEADER_BYTES) return null;
        this.#isFound = false;
        return end > at ? { end } : null;
      }
      if (end + frame.sizeBytes > this.#held.length) return null;
      this.#first ??= frame;
      if (frame.key !== this.#first.key) throw new MillraceError("bad_media", "the format of the sound changed");
      end += frame.sizeBytes;
      samples += frame.samples;
      if (samples * 90_000 / frame.sampleRate >= PES_90K) return { end };
    }
  }

  #write(from: number, to: number): Uint8Array {
    const program = this.#program ??= programOf(this.#syntax, this.#first!);
    const stream = program.streams[0]!;
    const packets = pesPackets(stream, maxPesBytes(stream, to - from, 0, true));
    const round = this.#pesCount / PES_PER_TABLES;
    const tables = Number.isInteger(round) ? program.psiPackets : 0;
    const out = new Uint8Array((tables + packets) * PACKET_BYTES);
    if (tables > 0) writePsi(program, out, 0, round);
    const time90k = Math.round(this.#zero90k + this.#samples * 90_000 / this.#first!.sampleRate);
    const unit = { pts90k: time90k, dts90k: time90k, keyframe: true, isReady: true, data: this.#held, from, to };
    writeAccessUnit(out, tables * PACKET_BYTES, packets, stream, unit, this.#counter, time90k);
    this.#counter = (this.#counter + packets) & 15;
    this.#pesCount++;
    this.#samples += this.#samplesIn(from, to);
    return out;
  }

  #samplesIn(from: number, to: number): number {
    let samples = 0;
    for (let at = from; at < to;) {
      const frame = this.#syntax(this.#held, at);
      if (frame === null) break;
      samples += frame.samples;
      at += frame.sizeBytes;
    }
    return samples;
  }
}

function programOf(syntax: AudioFrameSyntax, { sampleRate, channels, kind }: AudioFrame): Program {
  const codec: Codec = syntax === adtsFrame ? "aac" : kind === 3 ? "mp3" : "mp2";
  const track: Track = {
    ...{ id: 1, kind: "audio", codec, codecId: codec, language: null, isDefault: true, codecPrivate: null },
    ...{ width: null, height: null, sampleRate, channels, isFramed: true },
  };
  return buildProgram([track], [0]);
}

/** Takes the titles out that stand between the bytes of the sound, after every `intervalBytes` of it. */
export class TitleFilter {
  readonly #intervalBytes: number;
  readonly #told: (title: string) => void;
  #soundLeft: number;
  /** Of a block of titles: null: its length comes next. */
  #block: number[] | null = null;
  #blockLeft = 0;

  constructor(intervalBytes: number, told: (title: string) => void) {
    this.#intervalBytes = intervalBytes;
    this.#soundLeft = intervalBytes;
    this.#told = told;
  }

  /** The sound in `bytes`. */
  push(bytes: Uint8Array): Uint8Array {
    const sound: Uint8Array[] = [];
    for (let at = 0; at < bytes.length;) {
      if (this.#soundLeft > 0) {
        const part = bytes.subarray(at, at + this.#soundLeft);
        sound.push(part);
        this.#soundLeft -= part.length;
        at += part.length;
      } else if (this.#block === null) {
        this.#blockLeft = bytes[at++]! * TITLE_UNIT_BYTES;
        this.#block = [];
      } else {
        const part = bytes.subarray(at, at + this.#blockLeft);
        for (const byte of part) this.#block.push(byte);
        this.#blockLeft -= part.length;
        at += part.length;
      }
      if (this.#block !== null && this.#blockLeft === 0) this.#endBlock(this.#block);
    }
    return concatBytes(sound);
  }

  #endBlock(block: readonly number[]): void {
    this.#block = null;
    this.#soundLeft = this.#intervalBytes;
    const title = titleIn(Uint8Array.from(block));
    if (title !== null) this.#told(title);
  }
}

/** `StreamTitle='…';` in UTF-8, or else in Windows-1252. */
function titleIn(block: Uint8Array): string | null {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(block);
  } catch {
    text = new TextDecoder("windows-1252").decode(block);
  }
  const title = /StreamTitle='(.*?)';/s.exec(text)?.[1];
  // Not even a title may bring lines and control characters into a log.
  return title === undefined ? null : title.replace(/\p{Cc}/gu, " ").trim().slice(0, MAX_TITLE_CHARS);
}
