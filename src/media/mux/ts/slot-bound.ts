/** How many packets a slot needs room for when its access units are not known in advance. */
import { MAX_BREAKS, packedUnits } from "./packed-audio.ts";
import { pesHeaderBytes } from "./pes.ts";
import { maxPesBytes, type Program } from "./program.ts";
import { MAX_PCR_GAP_90K, psiRoundsIn } from "./timing.ts";

/** Most packets needed to bring a stream's counter to its end. */
const ALIGNING_PACKETS = 16;
/** Assumed share of random access points among the access units. */
const FORESEEN_KEYFRAMES = 0.25;
/** Smallest access unit that the bound allows for, bytes. */
const LEAST_UNIT_BYTES = 8;

/** PCR packets that any slot may have: six seconds of silence. */
export const FREE_PCR_PACKETS = 64;
/** Further PCR packets per packet with payload: a layout must not be many times its file. */
export const PCR_PER_PAYLOAD = 2;

function pcrPacketBound(duration90k: number, payloadBytes: number): number {
  const wanted = Math.ceil(duration90k / MAX_PCR_GAP_90K) + 8;
  return Math.min(wanted, FREE_PCR_PACKETS + PCR_PER_PAYLOAD * Math.ceil(payloadBytes / 184));
}

/** Upper bound of the packets of a run, given bounds of its payload and of the access units of each stream; `hasSoundApart` as in the run. */
export function slotPackets(
  program: Program,
  duration90k: number,
  payloadBytes: number,
  accessUnits: readonly number[],
  hasSoundApart = false,
): number {
  let packets = psiRoundsIn(duration90k) * program.psiPackets + pcrPacketBound(duration90k, payloadBytes);
  let bytes = payloadBytes;
  // No access unit is smaller than a few bytes: a file's claims must not inflate a slot to many times the file's bytes.
  let left = Math.ceil(payloadBytes / LEAST_UNIT_BYTES);
  for (const [i, stream] of program.streams.entries()) {
    // The last packet of an access unit is half empty on average; counting a whole extra one makes it a bound.
    const units = Math.min(accessUnits[i]!, left);
    left -= units;
    const packed = hasSoundApart ? units : packedUnits(stream, units, duration90k);
    packets += packed + ALIGNING_PACKETS + (stream.format.frame90k === null ? 0 : MAX_BREAKS);
    bytes += units * stream.format.maxBytes(0, false) + packed * (pesHeaderBytes(1) + (stream.carriesPcr ? 8 : 0));
    // Parameter sets come with random access points. If all units are random access points, their half-empty packets have
    // room for more.
    const keyframes = Math.min(units, Math.ceil(units * FORESEEN_KEYFRAMES) + 8);
    bytes += keyframes * (maxPesBytes(stream, 0, 1, true) - maxPesBytes(stream, 0, 1, false));
  }
  return packets + Math.ceil(bytes / 184);
}
