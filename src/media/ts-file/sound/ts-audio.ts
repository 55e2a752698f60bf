/**
 * Replaces the sound of a transport stream by AAC. The file is cut into runs of equally many packets, and the AAC of a run
 * goes into the packets that the sound had there. A run needs only its own packets and some around it, so any range can be
 * made without the rest of the file, and always comes out the same. The maps in and around a run say what its sound is.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { hasPayload, NULL_PID, PACKET_BYTES, pidOf, unusable } from "../../../bytes/ts/packet.ts";
import type { PacketFormat } from "../../../bytes/ts/packet-source.ts";
import { writeNullPacket } from "../../mux/ts/packets.ts";
import type { PacketOverlay } from "../rewrite/rewritten.ts";
import { type FaultLedger, NO_FAULTS } from "../../model/faults.ts";
import { Kept } from "../../transcode/kept.ts";
import type { AudioEncoder } from "../../model/audio-target.ts";
import { type PacketSpan, RunSound } from "./run-sound.ts";
import { findSounds, type PidStretch, type SoundSearch, type SoundStretch } from "./sounds.ts";

/** Length of a run at the file's mean rate, ms: short enough for quick seeks, long enough to need few processes. */
const RUN_MS = 2000;
/** Least and most packets in a run: the latter is 8 MiB. */
const MIN_RUN_PACKETS = 64;
const MAX_RUN_PACKETS = 44_000;
/** Share of a run's length that is read before and after it at first; it doubles while sound is missing there. */
const REACH = 0.25;
const MAX_REACH = 2;

/** What the AAC of a file is made from. */
export interface TsAudioParts extends SoundSearch {
  readonly format: PacketFormat;
  /** Mean rate of the file; null when unknown. */
  readonly bytesPerSecond: number | null;
  readonly encoder: AudioEncoder;
  /** Where sound that could not be decoded is counted. */
  readonly faults: FaultLedger;
}

/** What was made of one run. */
interface MadeRunPackets {
  /** Packets whose sound became AAC, where they have payload. */
  readonly stretches: readonly PidStretch[];
  readonly made: readonly RunPackets[];
}

/** The replaced packets of one run. If the original sound was large, most of them are null packets. */
interface RunPackets {
  /** Numbers in the file. */
  readonly numbers: readonly number[];
  /** For each packet the offset of its 188 bytes in `packets`; −1 for a null packet. */
  readonly places: Int32Array;
  readonly packets: Uint8Array;
}

/** Leaves out null packets: for lossless sound they would fill the memory that is set aside for results. */
function compact(numbers: readonly number[], packets: Uint8Array): RunPackets {
  const places = new Int32Array(numbers.length).fill(-1);
  let used = 0;
  for (let i = 0; i < numbers.length; i++) {
    const at = i * PACKET_BYTES;
    if (pidOf(packets, at) === NULL_PID) continue;
    packets.copyWithin(used, at, at + PACKET_BYTES);
    places[i] = used;
    used += PACKET_BYTES;
  }
  return { numbers, places, packets: packets.slice(0, used) };
}

/** Puts AAC into the packets of a transport stream. Kept results only save work: any packet can be made again. */
export class TsAudio implements PacketOverlay {
  readonly #parts: TsAudioParts;
  readonly #runPackets: number;
  readonly #runs = new Kept<MadeRunPackets>();

  constructor(parts: TsAudioParts) {
    this.#parts = parts;
    const { format, bytesPerSecond } = parts;
    const wanted = Math.ceil((bytesPerSecond ?? 0) * RUN_MS / 1000 / format.strideBytes);
    this.#runPackets = Math.max(MIN_RUN_PACKETS, Math.min(MAX_RUN_PACKETS, wanted));
  }

  async apply(packets: Uint8Array, first: number, source: ByteSource, signal: AbortSignal): Promise<void> {
    const end = first + packets.length / PACKET_BYTES;
    const firstRun = Math.floor(first / this.#runPackets);
    const done = new Set<number>();
    /** Places of packets that held the original sound. */
    const ours: number[] = [];
    const overlay = (made: readonly RunPackets[]) => {
      for (const { numbers, places, packets: replaced } of made) {
        for (let i = lowerBound(numbers, first); i < numbers.length && numbers[i]! < end; i++) {
          const at = (numbers[i]! - first) * PACKET_BYTES;
          const place = places[i]!;
          if (place < 0) writeNullPacket(packets, at);
          else packets.set(replaced.subarray(place, place + PACKET_BYTES), at);
          done.add(at);
        }
      }
    };
    for (let run = firstRun; run * this.#runPackets < end; run++) {
      const { stretches, made } = await this.#run(run, source, signal);
      const from = Math.max(first, run * this.#runPackets);
      const to = Math.min(end, (run + 1) * this.#runPackets);
      for (let number = from; number < to; number++) {
        const at = (number - first) * PACKET_BYTES;
        if (done.has(at) || unusable(packets, at) || !hasPayload(packets, at)) continue;
        const pid = pidOf(packets, at);
        if (stretches.some((one) => one.pid === pid && one.from <= number && number < one.to)) ours.push(at);
      }
      overlay(made);
    }
    // A run's sound begins with the first PES that starts in it; packets before that belong to the previous run.
    if (firstRun > 0 && ours.some((at) => !done.has(at))) {
      overlay((await this.#run(firstRun - 1, source, signal)).made);
    }
    // The rest are repeated packets, and ends of PES whose start is not in the file.
    for (const at of ours) if (!done.has(at)) writeNullPacket(packets, at);
  }

  async #run(run: number, source: ByteSource, signal: AbortSignal): Promise<MadeRunPackets> {
    const kept = this.#runs.get(run);
    if (kept !== undefined) return kept;
    const { format, origin90k, encoder } = this.#parts;
    const place = { start: run * this.#runPackets, end: Math.min(format.packetCount, (run + 1) * this.#runPackets) };
    const found = await this.#stretches(place, source, signal);
    const made: RunPackets[] = [];
    let bytes = 64;
    let units = 0;
    let silenced = 0;
    for (const { sound, stretch } of found) {
      const maker = new RunSound({ sound, origin90k, encoder });
      const { slots, packets, frames, silent } = await maker.make(stretch, place, signal);
      units += frames;
      silenced += silent;
      const kept = compact(slots.map(({ number }) => number), packets);
      made.push(kept);
      bytes += kept.packets.length + slots.length * 12;
    }
    const result = { stretches: found.map(({ sound: { pid }, from, to }) => ({ pid, from, to })), made };
    this.#runs.set(run, result, bytes);
    this.#parts.faults.record(run, { ...NO_FAULTS, units, silenced, spans: [] });
    return result;
  }

  /** Reads the packets of each sound in a run and as far around it as needed. */
  async #stretches(place: PacketSpan, source: ByteSource, signal: AbortSignal): Promise<SoundStretch[]> {
    const { format, origin90k, encoder } = this.#parts;
    const { packetCount } = format;
    for (let before = REACH, after = REACH;;) {
      const from = Math.max(0, place.start - Math.ceil(before * this.#runPackets));
      const to = Math.min(packetCount, place.end + Math.ceil(after * this.#runPackets));
      const found = await findSounds(this.#parts, format, source, [from, to], signal);
      const lacks = found.map(({ sound, stretch }) =>
        new RunSound({ sound, origin90k, encoder }).lacks(stretch, place)
      );
      const wantsBefore = from > 0 && before < MAX_REACH && lacks.some((lack) => lack.before);
      const wantsAfter = to < packetCount && after < MAX_REACH && lacks.some((lack) => lack.after);
      if (!wantsBefore && !wantsAfter) return found;
      if (wantsBefore) before *= 2;
      if (wantsAfter) after *= 2;
    }
  }
}

/** Index of the first of the ascending `numbers` that is at least `value`. */
function lowerBound(numbers: readonly number[], value: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
