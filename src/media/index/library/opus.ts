/** Times from Opus headers and packets (RFC 6716, RFC 7845). */

const RATE = 48000;

/** Sound at the beginning that decoders discard, s (RFC 7845, 5.1). */
export function opusPreSkipS(head: Uint8Array | null): number {
  return head === null || head.length < 12 ? 0 : (head[10]! | (head[11]! << 8)) / RATE;
}

/** Milliseconds of a frame by the low bits of the configuration: SILK, hybrid, CELT (RFC 6716, table 2). */
const SILK_MS = [10, 20, 40, 60];
const HYBRID_MS = [10, 20];
const CELT_MS = [2.5, 5, 10, 20];

/** Length of a packet, s (RFC 6716, 3.1). */
export function opusPacketS(packet: Uint8Array): number {
  const toc = packet[0] ?? 0;
  const config = toc >> 3;
  const ms = config < 12 ? SILK_MS[config & 3]! : config < 16 ? HYBRID_MS[config & 1]! : CELT_MS[config & 3]!;
  const code = toc & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : (packet[1] ?? 0) & 0x3f;
  return ms * frames / 1000;
}
