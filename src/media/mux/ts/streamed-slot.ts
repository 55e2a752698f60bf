/**
 * Muxes one run of a streamed timeline as its access units arrive, into a slot of fixed size if one is set. The output
 * depends on the access units and their order alone, never on how they were batched, so every read of a slot gives the
 * same bytes.
 */
import type { SlotTally } from "../../model/faults.ts";
import type { ByteLender } from "../../../bytes/source.ts";
import { HeldParts } from "../../source/held-parts.ts";
import type { RunSample } from "../../model/timeline.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import type { PacketSink } from "../chunks.ts";
import { PACKET_BODY_BYTES, writeNullPacket, writePcrPacket, writeZeroPacket } from "./packets.ts";
import { maxPesBytes, pesPackets, type Program, subtitlePesPackets, writeAccessUnit, writePsi } from "./program.ts";
import { AccessFlags } from "./access-flags.ts";
import { headOf, type Lane } from "./lane.ts";
import { AudioPacker, type PackedFrames } from "./packed-audio.ts";
import { FREE_PCR_PACKETS, PCR_PER_PAYLOAD, pcrPacketsBy } from "./slot-bound.ts";
import { SlotCounts } from "./slot-counts.ts";
import type { StreamedSlotOptions } from "./slot-options.ts";
import { pesHeaderBytes } from "./pes.ts";
import {
  DECODER_DELAY_90K,
  LONGEST_PCR_GAP_90K,
  MAX_PCR_GAP_90K,
  MAX_PCR_PACKETS_IN_GAP,
  packetsToAlign,
  psiRoundsIn,
  START_OFFSET_90K,
} from "./timing.ts";

/** An access unit waits at most this long for those of other tracks: containers interleave within 0.5 s. */
const REORDER_WINDOW_90K = 45000;
/**
 * Longest wait for the stream with the clock: a picture gets its decoding time once the pictures after it are known,
 * which takes seconds where there is one every 5 s.
 */
const CLOCK_WINDOW_90K = 2_700_000;
/**
 * Most bytes of access units that wait for other tracks: half a second of 64 Mbit/s. Beyond it they leave as they came.
 */
const MAX_HELD_BYTES = 4 * 1024 * 1024;
/** Most access units that wait: half a second of 32 tracks of sound has 800. */
const MAX_HELD_UNITS = 4096;
/** Extra wait of the newest frame of sound for a following one, 90 kHz (2 s): it may be the last of the slot. */
const SOUND_WINDOW_90K = 180_000;
/** Most of an access unit that does not fit its slot that may be used to bring a counter to its end. */
const REMNANT_BYTES = 1024;

/** Null packets made in one go. */
const PADDING_PACKETS = 1024;
/** How far an estimate may be from a slot's first decoding time, 90 kHz: half of the decoder's delay. More is an error. */
const MAX_CLOCK_WAIT_90K = DECODER_DELAY_90K / 2;
/** Muxer of one slot. Push access units in file order, then `finish`; take the finished buffers at any time. */
export class StreamedSlot {
  readonly #program: Program;
  readonly #options: StreamedSlotOptions;
  readonly #sink: PacketSink;
  readonly #held: HeldParts;
  readonly #lanes: Lane[];
  readonly #laneOf: readonly (number | undefined)[];
  readonly #duration90k: number;
  readonly #rounds: number;
  #round = 0;
  #start90k = 0;
  #newest90k = -Infinity;
  #newestMain90k = -Infinity;
  #lastPcr90k = -Infinity;
  /** The clock was sent in this slot. */
  #hasPcr = false;
  #usedPackets = 0;
  #pcrPackets = 0;
  /** PES of the stream with the clock so far. */
  #clockUnits = 0;
  #heldBytes = 0;
  #heldUnits = 0;
  #started = false;
  #overflowed = false;
  readonly #counts: SlotCounts;
  /** Packets that subtitles may still take beyond their bytes in the file. */
  #subtitlePackets: number;

  /** `lender`: where the bytes of the access units are lent from, until `keep`. Default: they are the muxer's own. */
  constructor(program: Program, options: StreamedSlotOptions, sink: PacketSink, lender: ByteLender | null = null) {
    this.#program = program;
    this.#held = new HeldParts(lender);
    this.#options = options;
    this.#counts = new SlotCounts(options);
    this.#subtitlePackets = options.subtitlePackets ?? Infinity;
    this.#sink = sink;
    this.#lanes = program.streams.map((stream) => ({
      isAwaited: stream.format.partsOf === undefined,
      packer: AudioPacker.of(stream),
      queue: [],
      arrived90k: -Infinity,
      kept: 0,
      packets: 0,
      overflow: null,
      flags: new AccessFlags(stream.format),
      span: null,
    }));
    const laneOf: (number | undefined)[] = [];
    for (const [lane, stream] of program.streams.entries()) laneOf[stream.trackIndex] = lane;
    this.#laneOf = laneOf;
    this.#duration90k = Math.max(0, options.duration90k);
    this.#rounds = psiRoundsIn(this.#duration90k);
  }

  /** Takes the next access unit; those of tracks that the program lacks are ignored. */
  push(unit: RunSample): void {
    const lane = this.#laneOf[unit.track];
    if (lane === undefined || unit.data.length === 0) return;
    const sample = this.#lanes[lane]!.flags.of(unit);
    this.#counts.watch(this.#lanes[lane]!, sample);
    const { packer, queue, isAwaited } = this.#lanes[lane]!;
    if (!isAwaited) return this.#pushSubtitle(lane, sample);
    this.#heldBytes += sample.data.length;
    this.#heldUnits++;
    if (packer === null) queue.push(sample);
    else {
      if (!packer.takes(sample)) this.#closePacked(this.#lanes[lane]!);
      packer.add(sample);
    }
    if (sample.dts90k > this.#newest90k) this.#newest90k = sample.dts90k;
    this.#lanes[lane]!.arrived90k = this.#newest90k;
    if (lane === this.#program.pcrStream) this.#newestMain90k = sample.dts90k;
    while (this.#emitNext(false));
  }

  /** Each PES has as many packets as bring the counter to its end: the last one of the slot is not known in time. */
  #pushSubtitle(lane: number, sample: RunSample): void {
    const stream = this.#program.streams[lane]!;
    const parts = stream.format.partsOf!(sample.data);
    const packets = parts.reduce((sum, part) => sum + subtitlePesPackets(stream, part.length), 0);
    const beyond = packets - Math.floor((sample.packedBytes ?? sample.data.length) / PACKET_BODY_BYTES);
    if (parts.length === 0 || beyond > this.#subtitlePackets) return void this.#counts.dropped++;
    this.#subtitlePackets -= Math.max(0, beyond);
    for (const [i, data] of parts.entries()) {
      const [pts90k, dts90k] = [sample.pts90k + i, sample.dts90k + i];
      this.#lanes[lane]!.queue.push({ ...sample, pts90k, dts90k, data, frames: i === 0 ? 1 : 0 });
      this.#heldBytes += data.length;
      this.#heldUnits++;
    }
    while (this.#emitNext(false));
  }

  /** What the muxer has seen so far. Complete after `finish`. */
  get tally(): SlotTally {
    return this.#counts.tally(this.#lanes, this.#lanes[this.#program.pcrStream]!);
  }

  /** Keeps the bytes of the waiting access units. Call it before more are read. */
  keep(): void {
    for (const lane of this.#lanes) {
      // Frames of sound and subtitles were copied as they came.
      while (lane.isAwaited && lane.packer === null && lane.kept < lane.queue.length) {
        const sample = lane.queue[lane.kept]!;
        lane.queue[lane.kept++] = { ...sample, data: this.#held.keep(sample.data) };
      }
    }
  }

  /** Writes everything out and brings the counters to 15. `pad` does the rest. */
  finish(): void {
    while (this.#emitNext(true));
    this.#begin(this.#options.startDts90k);
    for (let lane = 0; lane < this.#lanes.length; lane++) {
      this.#alignOverflowed(lane);
      this.#alignVideo(lane);
    }
    this.#fillPcr(this.#options.endDts90k ?? this.#lastPcr90k);
    while (this.#round < this.#rounds) this.#putPsi();
  }

  /** Null packets that fill the slot up; false when it is full. At most a buffer's worth per call. */
  pad(): boolean {
    if (this.#options.packets === null) return false;
    const end = Math.min(this.#options.packets, this.#usedPackets + PADDING_PACKETS);
    if (this.#usedPackets >= end) return false;
    for (; this.#usedPackets < end; this.#usedPackets++) {
      writeNullPacket(this.#sink.reserve(PACKET_BYTES), this.#sink.at);
      this.#sink.advance(PACKET_BYTES);
    }
    return true;
  }

  #emitNext(atEnd: boolean): boolean {
    let best = -1;
    let bestTime = Infinity;
    let waiting = false;
    for (let i = 0; i < this.#lanes.length; i++) {
      const head = headOf(this.#lanes[i]!);
      if (head === null) {
        waiting ||= this.#lanes[i]!.isAwaited;
        continue;
      }
      const time = head.dts90k;
      if (time < bestTime || (time === bestTime && i === this.#program.pcrStream)) [best, bestTime] = [i, time];
    }
    if (best < 0) return false;
    // Nothing goes before the random access point that gives the slot its clock, or the clock would run back.
    const first = headOf(this.#lanes[this.#program.pcrStream]!);
    if (!this.#started && !this.#options.isFirst && first !== null) {
      [best, bestTime] = [this.#program.pcrStream, first.dts90k];
    }
    const lane = this.#lanes[best]!;
    const mayBeLast = lane.isAwaited && lane.queue.length + (lane.packer?.first ? 1 : 0) === 1;
    const isFull = this.#heldBytes > MAX_HELD_BYTES || this.#heldUnits > MAX_HELD_UNITS;
    const window90k = first === null ? CLOCK_WINDOW_90K : REORDER_WINDOW_90K;
    const age90k = this.#newest90k - bestTime;
    if (!atEnd && !isFull && (waiting || mayBeLast) && age90k <= window90k) return false;
    const isVideo = this.#program.streams[best]!.track.kind === "video";
    if (lane.queue.length === 0) {
      // Hold the last frame until another arrives: the last PES of a slot brings its counter to the end.
      const frames = lane.packer!.count;
      if (!atEnd && !isFull && frames === 1 && age90k <= SOUND_WINDOW_90K) return false;
      // However late they are, frames in a row fill a PES.
      if (!atEnd && !isFull && this.#newest90k - lane.arrived90k <= REORDER_WINDOW_90K) return false;
      this.#closePacked(lane, atEnd || frames === 1 ? frames : frames - 1);
    } else if (!atEnd && !isFull && mayBeLast && !isVideo && age90k <= SOUND_WINDOW_90K) return false;
    const sample = lane.queue.shift()!;
    this.#heldBytes -= sample.data.length;
    this.#heldUnits--;
    this.#emit(best, sample, (atEnd || !isVideo) && headOf(lane) === null);
    if (lane.kept > 0) {
      lane.kept--;
      this.#held.drop(sample.data);
    }
    return true;
  }

  /** Puts the first `count` of the frames that wait for more into the queue, as one. */
  #closePacked(lane: Lane, count = lane.packer!.count): void {
    const packer = lane.packer!;
    this.#heldUnits -= count - 1;
    this.#heldBytes -= packer.bytes;
    const packed = packer.close(count);
    this.#heldBytes += packed.data.length + packer.bytes;
    lane.queue.push(packed);
  }

  /** How far the clock may go without the main stream: none of its later access units is decoded earlier. */
  #clockLimit(): number {
    return Math.max(this.#newestMain90k, this.#options.endDts90k ?? -Infinity);
  }

  /** The previous slot's clock may have run up to an estimate of this slot's first decoding time; it must not run back. */
  #followClock(dts90k: number): void {
    const { followsClock, startDts90k } = this.#options;
    if (followsClock && startDts90k > dts90k && startDts90k - dts90k <= MAX_CLOCK_WAIT_90K) {
      this.#lastPcr90k = startDts90k;
    }
  }

  #begin(time90k: number): void {
    if (this.#started) return;
    this.#started = true;
    this.#start90k = time90k;
    this.#putPsi();
  }

  #emit(index: number, sample: PackedFrames, isLast: boolean): void {
    const stream = this.#program.streams[index]!;
    const lane = this.#lanes[index]!;
    if (!this.#started && stream.carriesPcr) this.#followClock(sample.dts90k);
    const time = Math.max(sample.dts90k, this.#lastPcr90k);
    this.#begin(time);
    if (this.#lastPcr90k === -Infinity && !stream.carriesPcr) this.#putPcr(time);
    this.#fillPcr(stream.carriesPcr ? time : Math.min(time, this.#clockLimit()));
    while (this.#round < this.#rounds && this.#psiTime(this.#round) <= time) this.#putPsi();
    const pcr90k = this.#pcrOf(sample.dts90k);
    if (sample.dts90k < (stream.carriesPcr ? pcr90k : this.#lastPcr90k) - DECODER_DELAY_90K) {
      this.#counts.late += sample.frames ?? 1;
    }
    const maxBytes = lane.packer === null && lane.isAwaited
      ? maxPesBytes(stream, sample.data.length, sample.pts90k - sample.dts90k, sample.keyframe)
      : pesHeaderBytes(sample.pts90k - sample.dts90k) + sample.data.length;
    let packets = pesPackets(stream, maxBytes);
    if (isLast || !lane.isAwaited) packets += packetsToAlign(lane.packets + packets);
    if (this.#overflowed || packets > this.#packetsLeft()) {
      this.#overflowed = true;
      lane.overflow ??= { ...sample, data: sample.data.slice(0, REMNANT_BYTES) };
      this.#counts.dropped += sample.frames ?? 1;
      return;
    }
    this.#write(index, sample, packets, pcr90k);
    this.#counts.written += sample.frames ?? 1;
  }

  #write(index: number, sample: RunSample, packets: number, pcr90k: number): void {
    const stream = this.#program.streams[index]!;
    const lane = this.#lanes[index]!;
    const unit = {
      pts90k: sample.pts90k,
      dts90k: sample.dts90k,
      keyframe: sample.keyframe,
      isReady: lane.packer !== null || !lane.isAwaited,
      data: sample.data,
      from: 0,
      to: sample.data.length,
    };
    const bytes = packets * PACKET_BYTES;
    const out = this.#sink.reserve(bytes);
    writeAccessUnit(out, this.#sink.at, packets, stream, unit, lane.packets, pcr90k);
    this.#sink.advance(bytes);
    if (stream.carriesPcr) {
      this.#hasPcr = true;
      this.#lastPcr90k = pcr90k;
      this.#clockUnits++;
    }
    lane.packets += packets;
    this.#usedPackets += packets;
  }

  /**
   * Zeros after the last picture, whose PES has no length, bring a counter to its end if that picture went out before the
   * end was known.
   */
  #alignVideo(index: number): void {
    const lane = this.#lanes[index]!;
    const { pid, track } = this.#program.streams[index]!;
    if (track.kind !== "video" || lane.packets === 0) return;
    for (let left = packetsToAlign(lane.packets); left > 0; left--) {
      writeZeroPacket(this.#sink.reserve(PACKET_BYTES), this.#sink.at, pid, lane.packets);
      this.#sink.advance(PACKET_BYTES);
      lane.packets++;
      this.#usedPackets++;
    }
  }

  /** A stream that was cut off mid-slot gets a remnant of what did not fit, so that its counter ends at 15. */
  #alignOverflowed(index: number): void {
    const lane = this.#lanes[index]!;
    const packets = packetsToAlign(lane.packets);
    if (packets === 0 || lane.overflow === null) return;
    const stream = this.#program.streams[index]!;
    const room = Math.max(16, packets * 184 - 8 - maxPesBytes(stream, 0, 1, false) - 128);
    const sample = {
      ...lane.overflow,
      keyframe: false,
      data: lane.overflow.data.subarray(0, room),
    };
    const maxBytes = maxPesBytes(stream, sample.data.length, sample.pts90k - sample.dts90k, false);
    if (pesPackets(stream, maxBytes) > packets) return;
    this.#write(index, sample, packets, this.#pcrOf(sample.dts90k));
  }

  /** The clock with a PES that is decoded at `dts90k`. It grows each time: decoders divide by what lies between two of its values. */
  #pcrOf(dts90k: number): number {
    return Math.max(this.#hasPcr ? this.#lastPcr90k + 1 : this.#lastPcr90k, dts90k);
  }

  /** Packets left for access units and PCR: room for tables and counter alignment is set aside first. */
  #packetsLeft(): number {
    if (this.#options.packets === null) return Infinity;
    const reserved = (this.#rounds - this.#round) * this.#program.psiPackets + 16 * this.#program.alignedStreams;
    return this.#options.packets - this.#usedPackets - reserved;
  }

  #psiTime(round: number): number {
    return this.#start90k + (round * this.#duration90k) / this.#rounds;
  }

  #putPsi(): void {
    const bytes = this.#program.psi.length;
    writePsi(this.#program, this.#sink.reserve(bytes), this.#sink.at, this.#round++);
    this.#sink.advance(bytes);
    this.#usedPackets += this.#program.psiPackets;
  }

  #putPcr(time90k: number): void {
    const lane = this.#lanes[this.#program.pcrStream]!;
    const pid = this.#program.streams[this.#program.pcrStream]!.pid;
    const pcr90k = time90k + START_OFFSET_90K - DECODER_DELAY_90K;
    writePcrPacket(this.#sink.reserve(PACKET_BYTES), this.#sink.at, pid, lane.packets - 1, pcr90k);
    this.#sink.advance(PACKET_BYTES);
    this.#usedPackets++;
    this.#pcrPackets++;
    this.#hasPcr = true;
    this.#lastPcr90k = time90k;
  }

  #fillPcr(until90k: number): void {
    if (this.#lastPcr90k === -Infinity) return;
    for (let n = 0; n < MAX_PCR_PACKETS_IN_GAP && until90k - this.#lastPcr90k > LONGEST_PCR_GAP_90K; n++) {
      const next90k = this.#lastPcr90k + MAX_PCR_GAP_90K;
      if (this.#packetsLeft() < 1 || this.#pcrPackets >= this.#mostPcrPackets(next90k)) return;
      this.#putPcr(next90k);
    }
  }

  /** Most packets of PCR alone up to `time90k`. */
  #mostPcrPackets(time90k: number): number {
    const { clockPes } = this.#options;
    const most = FREE_PCR_PACKETS + PCR_PER_PAYLOAD * (this.#usedPackets - this.#pcrPackets);
    if (clockPes === null) return most;
    return Math.min(most, pcrPacketsBy(time90k - this.#start90k, this.#duration90k, this.#clockUnits, clockPes));
  }
}
