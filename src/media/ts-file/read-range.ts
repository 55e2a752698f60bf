/** A range of a transport stream, in chunks. */
import type { ByteSource } from "../../bytes/source.ts";
import { GapFinder } from "../../bytes/ts/gap-finder.ts";
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { type PacketFormat, readPackets } from "../../bytes/ts/packet-source.ts";

/** Packets read at a time, about 256 KiB, and handed out at a time, just under 64 KiB. */
const READ_PACKETS = 1392;
const CHUNK_PACKETS = 348;

/**
 * The bytes `[start, end)` of the packets of `source`, 188 bytes each. The consumer releases each chunk to `source`, if that
 * takes memory back. Rejects as `ByteSource.read` does.
 */
export async function* readTs(
  format: PacketFormat,
  start: number,
  end: number,
  source: ByteSource,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { strideBytes, firstAt, onGap } = format;
  const finder = onGap === undefined ? null : new GapFinder(strideBytes, onGap);
  for (let at = start; at < end;) {
    const first = Math.floor(at / PACKET_BYTES);
    const last = Math.ceil(Math.min(end, (first + READ_PACKETS) * PACKET_BYTES) / PACKET_BYTES);
    // Plain packets are sent as the file has them, with what it lost.
    const isPlain = strideBytes === PACKET_BYTES;
    const from = firstAt + first * PACKET_BYTES;
    const bytes = isPlain
      ? await source.read(from, (last - first) * PACKET_BYTES, { signal })
      : await readPackets(format, source, first, last - first, signal);
    if (isPlain) finder?.push(bytes, from);
    const base = first * PACKET_BYTES;
    const until = Math.min(end, last * PACKET_BYTES);
    while (at < until) {
      const next = Math.min(until, at + CHUNK_PACKETS * PACKET_BYTES);
      // Each chunk is released by its consumer, and all are of one read.
      if (next < until) source.hold?.(bytes);
      yield bytes.subarray(at - base, next - base);
      at = next;
    }
  }
}
