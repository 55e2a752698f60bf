/** The clock of the layout: when packets arrive at a decoder, in 90 kHz ticks. */

/** Added to all times, so that the first PCR is well above zero. */
export const START_OFFSET_90K = 126000;
/**
 * PCR runs this far behind the decoding times: 0.7 s of buffering, which absorbs access units that a container stores
 * late and which broadcast players expect.
 */
export const DECODER_DELAY_90K = 63000;
/** A gap between the PCRs of access units needs no packet up to the limit of 2.7.2: 100 ms. */
export const LONGEST_PCR_GAP_90K = 9000;
/** Spacing of the PCR packets that fill a longer gap: 90 ms. */
export const MAX_PCR_GAP_90K = 8100;
/** A gap in time gets PCR packets for at most this long (90 s); a longer one is damage. */
export const MAX_PCR_PACKETS_IN_GAP = 1000;
/**
 * Most PCR packets in a slot: 24 minutes of a slide show without a random access point. Without this bound, 100,000
 * one-byte pictures 90 s apart became 19 GB of PCR and took 2 GB of memory.
 */
export const MAX_PCR_PACKETS_IN_SLOT = 16_384;
/** Longest time between PAT and PMT: 500 ms, because players that join in the middle wait for them. */
const MAX_PSI_INTERVAL_90K = 45000;
/** Slots longer than 1024 intervals (8.5 min without a random access point) get no more tables than that. */
const MAX_PSI_SIXTEENS = 64;

/** How many PCR-only packets go between two PCRs that are `gap90k` apart, in a slot that has `before` of them already. */
export function pcrPacketsBetween(gap90k: number, before: number): number {
  if (gap90k <= LONGEST_PCR_GAP_90K) return 0;
  const wanted = Math.min(MAX_PCR_PACKETS_IN_GAP, Math.ceil(gap90k / MAX_PCR_GAP_90K) - 1);
  return Math.max(0, Math.min(wanted, MAX_PCR_PACKETS_IN_SLOT - before));
}

/** How many times PAT and PMT are sent in a slot: a multiple of 16, so that their counters end at 15. */
export function psiRoundsIn(slot90k: number): number {
  return 16 * Math.min(MAX_PSI_SIXTEENS, Math.max(1, Math.ceil(slot90k / (16 * MAX_PSI_INTERVAL_90K))));
}

/** How many packets bring a counter that stands at `packets` since the slot began to the next multiple of 16. */
export function packetsToAlign(packets: number): number {
  return (16 - (packets & 15)) & 15;
}
