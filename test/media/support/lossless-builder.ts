/** FLAC, Ogg and WAV files without sound in them. */
import { concatBytes } from "../../../src/bytes/hex.ts";
import { seeded } from "./files.ts";

const text = (value: string) => new TextEncoder().encode(value);

/** Samples of a FLAC block, and their rate. */
export const FLAC_BLOCK = 4096;
export const FLAC_RATE = 44100;

function crc8(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80) !== 0 ? ((crc << 1) ^ 7) & 0xff : (crc << 1) & 0xff;
  }
  return crc;
}

/** `value` as FLAC codes frame numbers. */
function coded(value: number): number[] {
  if (value < 0x80) return [value];
  const tail: number[] = [];
  let lead = 0x80;
  let room = 0x3f;
  for (; value > room; value = Math.floor(value / 64)) {
    tail.unshift(0x80 | (value & 0x3f));
    lead = (lead >> 1) | 0x80;
    room >>= 1;
  }
  return [lead | value, ...tail];
}

/** Frames of random sizes, 16-bit stereo; their content looks like the beginning of a frame here and there. */
export function flacFrames(count: number, seed = 1): Uint8Array[] {
  const random = seeded(seed);
  return Array.from({ length: count }, (_, n) => {
    const header = Uint8Array.from([0xff, 0xf8, 0xc9, 0x18, ...coded(n)]);
    // Quiet stretches take less.
    const body = new Uint8Array((n % 400 < 100 ? 20 : 2000) + Math.floor(random() * 4000));
    for (let i = 0; i < body.length; i++) body[i] = Math.floor(random() * 256);
    if (n % 3 === 0) body.set([0xff, 0xf8, 0xc9, 0x18, 5, 0xff, 0xff, 0xf8], 4);
    return concatBytes([header, Uint8Array.of(crc8(header)), body]);
  });
}

/** The head of a file: STREAMINFO and other blocks with their content. */
export function flacHead(totalSamples: number, blocks: readonly { type: number; body: Uint8Array }[] = []): Uint8Array {
  const info = new Uint8Array(34);
  const view = new DataView(info.buffer);
  view.setUint16(0, FLAC_BLOCK);
  view.setUint16(2, FLAC_BLOCK);
  // Rate, channels less one, bits less one, and the highest bits of the number of samples.
  view.setUint32(10, FLAC_RATE * 4096 + (1 << 9) + (15 << 4));
  view.setUint32(14, totalSamples);
  const all = [{ type: 0, body: info }, ...blocks];
  const parts = all.map(({ type, body }, i) => {
    const last = i === all.length - 1 ? 0x80 : 0;
    return concatBytes([
      Uint8Array.of(type | last, body.length >> 16, (body.length >> 8) & 0xff, body.length & 0xff),
      body,
    ]);
  });
  return concatBytes([text("fLaC"), ...parts]);
}

/** A seek table: sample numbers and offsets from the first frame. */
export function seekTable(points: readonly (readonly [sample: number, offset: number])[]): Uint8Array {
  const table = new Uint8Array(points.length * 18);
  const view = new DataView(table.buffer);
  for (const [i, [sample, offset]] of points.entries()) {
    view.setUint32(i * 18 + 4, sample);
    view.setUint32(i * 18 + 12, offset);
    view.setUint16(i * 18 + 16, FLAC_BLOCK);
  }
  return table;
}

/** A page of Ogg with whole packets of at most 254 bytes; without a checksum, which mediabunny does not look at. */
export function oggPage(
  options: { readonly flags: number; readonly granule: number; readonly serial?: number; readonly number: number },
  packets: readonly Uint8Array[],
): Uint8Array {
  const head = new Uint8Array(27 + packets.length);
  const view = new DataView(head.buffer);
  head.set(text("OggS"));
  head[5] = options.flags;
  view.setBigInt64(6, BigInt(options.granule), true);
  view.setUint32(14, options.serial ?? 7, true);
  view.setUint32(18, options.number, true);
  head[26] = packets.length;
  head.set(packets.map((packet) => packet.length), 27);
  return concatBytes([head, ...packets]);
}

/** The two pages that begin Opus, whose first `preSkip` samples are skipped. */
export function opusPages(preSkip: number): Uint8Array[] {
  const head = concatBytes([text("OpusHead"), Uint8Array.of(1, 2, preSkip & 0xff, preSkip >> 8), new Uint8Array(7)]);
  return [
    oggPage({ flags: 2, granule: 0, number: 0 }, [head]),
    oggPage({ flags: 0, granule: 0, number: 1 }, [concatBytes([text("OpusTags"), new Uint8Array(8)])]),
  ];
}

/** Packets of 20 ms, 50 on a page, of sizes at random; the number of a packet is in it. */
export function opusFile(
  packets: number,
  preSkip = 312,
  seed = 1,
): { readonly bytes: Uint8Array; readonly packets: Uint8Array[] } {
  const random = seeded(seed);
  const all = Array.from({ length: packets }, (_, n) => {
    const packet = new Uint8Array(60 + Math.floor(random() * 190)).fill(n & 0xff);
    // CELT, 20 ms, stereo, one frame.
    packet.set([0xfc, n >> 8, n & 0xff]);
    return packet;
  });
  const pages = opusPages(preSkip);
  for (let n = 0; n < packets; n += 50) {
    const end = Math.min(packets, n + 50);
    pages.push(
      oggPage({ flags: end === packets ? 4 : 0, granule: end * 960, number: pages.length }, all.slice(n, end)),
    );
  }
  return { bytes: concatBytes(pages), packets: all };
}

/** A WAV file of PCM; `chunks` come before the sound. */
export function wavFile(
  pcm: Uint8Array,
  { channels = 2, rate = 44100, bits = 16, format = 1 }: {
    channels?: number;
    rate?: number;
    bits?: number;
    format?: number;
  } = {},
  chunks: readonly Uint8Array[] = [],
): Uint8Array {
  const fmt = new DataView(new ArrayBuffer(24));
  new Uint8Array(fmt.buffer).set(text("fmt "));
  fmt.setUint32(4, 16, true);
  fmt.setUint16(8, format, true);
  fmt.setUint16(10, channels, true);
  fmt.setUint32(12, rate, true);
  fmt.setUint32(16, rate * channels * bits / 8, true);
  fmt.setUint16(20, channels * bits / 8, true);
  fmt.setUint16(22, bits, true);
  const rest = concatBytes([text("WAVE"), new Uint8Array(fmt.buffer), ...chunks, wavChunk("data", pcm)]);
  return concatBytes([wavChunk("RIFF", rest)]);
}

/** A chunk that claims `size`, by default the right one. */
export function wavChunk(id: string, body: Uint8Array, size = body.length): Uint8Array {
  const head = new Uint8Array(8);
  head.set(text(id));
  new DataView(head.buffer).setUint32(4, size, true);
  return concatBytes([head, body]);
}
