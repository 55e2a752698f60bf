/** How many packets a slot needs room for when its access units are not known in advance. */
import { MAX_BREAKS, packedUnits } from "./packed-audio.ts";
import { pesHeaderBytes } from "./pes.ts";
import { maxPesBytes, type Program, type ProgramStream } from "./program.ts";
import { MAX_PCR_GAP_90K, psiRoundsIn } from "./timing.ts";

/** Most packets needed to bring a stream's counter to its end. */
const ALIGNING_PACKETS = 16;
/**
 * Assumed share of random access points among the access units, and how many there may be on top. Where all are (intra
 * codecs), the half-empty packets at the ends of access units have room for the rest.
 */
const FORESEEN_KEYFRAMES = 0.1;
const FREE_KEYFRAMES = 4;
/**
 * Packets that the unfilled end of a picture's PES takes: half of one on average, three quarters of one if most are tiny.
 * A whole one is set aside where all may be tiny, and where that is at most this share of the slot.
 */
const PICTURE_END_PACKETS = 0.8;
const TINY_PICTURE_BYTES = 500;
const CHEAP_SHARE = 0.01;
/** Smallest access unit that the bound allows for, bytes. */
const LEAST_UNIT_BYTES = 8;

/** PCR packets that every slot may have: six seconds of silence. */
export const FREE_PCR_PACKETS = 64;
/** Further PCR packets per packet with payload: a layout must not be many times its file. */
export const PCR_PER_PAYLOAD = 2;

/**
 * What a subtitle takes beyond its bytes: 16 packets bring its counter to the end, and it may be in two PES. And what all
 * of a slot may take: an eighth of its bytes, and half a minute of one language on top.
 */
const SUBTITLE_PACKETS = 24;
const SUBTITLE_SHARE = 1 / 8;
const FREE_SUBTITLE_BYTES = 32 * 1024;

/**
 * Packets that a slot of `payloadBytes` sets aside for `subtitles` beyond their bytes in the file, to which unpacking may
 * add `unpackedBytes`. What does not fit is left out, and takes nothing from pictures and sound.
 */
export function subtitlePackets(subtitles: number, payloadBytes: number, unpackedBytes: number): number {
  const wanted = subtitles * SUBTITLE_PACKETS + Math.ceil(unpackedBytes / 184);
  return Math.min(wanted, Math.ceil((payloadBytes * SUBTITLE_SHARE + FREE_SUBTITLE_BYTES) / 184));
}

/** PCR packets on top of the share of time that has passed: files begin and end with gaps. */
const SPARE_PCR_PACKETS = 8;

/**
 * How many packets of PCR alone a slot may have once `elapsed90k` of `duration90k` have passed and the stream with the
 * clock has had `pes` of the `foreseenPes` that the slot has room for. A gap between its access units leaves the room
 * of those that would be in it for the PCR, so no access unit loses its own room to the clock.
 */
export function pcrPacketsBy(elapsed90k: number, duration90k: number, pes: number, foreseenPes: number): number {
  const share = duration90k > 0 ? Math.min(1, elapsed90k / duration90k) : 1;
  const room = share * Math.max(foreseenPes, duration90k / MAX_PCR_GAP_90K);
  return SPARE_PCR_PACKETS + Math.max(0, Math.ceil(room) - pes);
}

function pcrPacketBound(duration90k: number, payloadBytes: number, foreseenPes: number): number {
  const wanted = pcrPacketsBy(duration90k, duration90k, foreseenPes, foreseenPes);
  return Math.min(wanted, FREE_PCR_PACKETS + PCR_PER_PAYLOAD * Math.ceil(payloadBytes / 184));
}

/** PES of each stream that a run with at most so many access units has room for. */
export function foreseenPes(
  program: Program,
  duration90k: number,
  payloadBytes: number,
  accessUnits: readonly number[],
): { readonly units: number; readonly pes: number }[] {
  // No access unit is smaller than a few bytes: a file's claims must not inflate a slot to many times the file's bytes.
  let left = Math.ceil(payloadBytes / LEAST_UNIT_BYTES);
  return program.streams.map((stream, i) => {
    const units = Math.min(accessUnits[i]!, left);
    left -= units;
    return { units, pes: packedUnits(stream, units, duration90k) };
  });
}

/** Room for the unfilled ends of `pes` PES. Frames of sound may all have one length, which fills a byte of its last packet. */
function endPackets(stream: ProgramStream, pes: number, payloadBytes: number): number {
  const mayAllBeTiny = payloadBytes < pes * TINY_PICTURE_BYTES;
  const isCheap = pes <= CHEAP_SHARE * payloadBytes / 184;
  return stream.track.kind !== "video" || mayAllBeTiny || isCheap ? pes : Math.ceil(pes * PICTURE_END_PACKETS);
}

/**
 * Upper bound of the packets of a run without those of `subtitlePackets`, given bounds of its payload and of the access
 * units and PES of each stream.
 */
export function slotPackets(
  program: Program,
  duration90k: number,
  payloadBytes: number,
  foreseen: readonly { readonly units: number; readonly pes: number }[],
): number {
  const clockPes = foreseen[program.pcrStream]!.pes;
  let packets = psiRoundsIn(duration90k) * program.psiPackets + pcrPacketBound(duration90k, payloadBytes, clockPes);
  let bytes = payloadBytes;
  for (const [i, stream] of program.streams.entries()) {
    if (stream.track.kind === "subtitle") continue;
    const { units, pes } = foreseen[i]!;
    packets += endPackets(stream, pes, payloadBytes) + ALIGNING_PACKETS;
    if (stream.format.frame90k !== null) packets += MAX_BREAKS;
    bytes += units * stream.format.maxBytes(0, false) + pes * (pesHeaderBytes(1) + (stream.carriesPcr ? 8 : 0));
    // Parameter sets come with random access points.
    const keyframes = Math.min(units, Math.ceil(units * FORESEEN_KEYFRAMES) + FREE_KEYFRAMES);
    bytes += keyframes * (maxPesBytes(stream, 0, 1, true) - maxPesBytes(stream, 0, 1, false));
  }
  return packets + Math.ceil(bytes / 184);
}
