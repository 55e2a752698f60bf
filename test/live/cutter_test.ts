import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { pidOf } from "../../src/bytes/ts/packet.ts";
import { BitrateMeter } from "../../src/live/broadcast/bitrate-meter.ts";
import { type CutPiece, PieceCutter } from "../../src/live/broadcast/cutter.ts";
import { FLAG_DISCONTINUITY, FLAG_END, FLAG_RANDOM_ACCESS } from "../../src/live/header.ts";
import { TsWatch } from "../../src/bytes/ts/watch.ts";
import { seeded } from "../metainfo/support.ts";

const PACKET = 188;
const clip = (name: string) => new Uint8Array(readFileSync(new URL(`../fixtures/${name}`, import.meta.url)));

function packetsOf(bytes: Uint8Array): Uint8Array[] {
  return Array.from({ length: bytes.length / PACKET }, (_, i) => bytes.subarray(i * PACKET, (i + 1) * PACKET));
}

/** Cuts `ts` fed in chunks, `chunkMs` apart. */
function cut(ts: Uint8Array, options: { chunk?: number; chunkMs?: number; piece?: number } = {}): CutPiece[] {
  const cutter = new PieceCutter(options.piece ?? 65536, true);
  const out: CutPiece[] = [];
  const chunk = options.chunk ?? 1316;
  let nowMs = 1_000_000;
  for (let at = 0; at < ts.length; at += chunk, nowMs += options.chunkMs ?? 1) {
    out.push(...cutter.push(ts.subarray(at, at + chunk), nowMs));
  }
  out.push(...cutter.end(nowMs));
  return out;
}

/** The numbers of packets where a decoder can start, as `TsWatch` sees them. */
function accessPoints(ts: Uint8Array): number[] {
  const watch = new TsWatch();
  const found: number[] = [];
  for (let at = 0; at < ts.length; at += PACKET) {
    const { accessPoint } = watch.push(ts, at);
    if (accessPoint !== null) found.push(accessPoint);
  }
  return found;
}

/** `whole` without the table packets that the cutter put in. */
function isSupersequence(whole: readonly Uint8Array[], part: readonly Uint8Array[]): boolean {
  let next = 0;
  for (const packet of whole) {
    const wanted = part[next];
    if (wanted !== undefined && packet.every((byte, i) => byte === wanted[i])) next++;
    else if (![0, 0x1000].includes(pidOf(packet, 0)) && pidOf(packet, 0) > 0x1fff) return false;
  }
  return next === part.length;
}

test("PieceCutter keeps every packet in order and no piece above the limit", () => {
  for (
    const name of ["ts-188.ts", "ts-hevc.ts", "ts-mpeg2.ts", "ts-audio-only.ts", "ts-open-gop.ts", "ts-two-programs.ts"]
  ) {
    for (const piece of [16384, 65536]) {
      const ts = clip(name);
      const pieces = cut(ts, { piece });
      assert(pieces.every(({ data }) => data.length <= piece && data.length % PACKET === 0), name);
      const whole = packetsOf(concatBytes(pieces.map(({ data }) => data)));
      assert(isSupersequence(whole, packetsOf(ts)), name);
      assert(pieces.some(({ flags }) => (flags & FLAG_RANDOM_ACCESS) !== 0), name);
      assertEquals(pieces.filter(({ flags }) => (flags & FLAG_END) !== 0), pieces.slice(-1));
    }
  }
});

test("PieceCutter gives each random access piece PAT and PMT before its access point", () => {
  for (const name of ["ts-188.ts", "ts-hevc.ts", "ts-mpeg2.ts"]) {
    const pieces = cut(clip(name), { piece: 16384 });
    const starts = pieces.filter(({ flags }) => (flags & FLAG_RANDOM_ACCESS) !== 0);
    assert(starts.length >= 2, name);
    for (const { data } of starts) {
      const points = accessPoints(data);
      assert(points.length > 0, `${name}: a decoder that sees this piece alone finds where to start`);
    }
  }
});

test("PieceCutter puts nothing in when the source has its tables there", () => {
  const ts = clip("ts-188.ts");
  const sizes = cut(ts).reduce((sum, { data }) => sum + data.length, 0);
  assert(sizes - ts.length <= 16 * 3 * PACKET, `${sizes - ts.length} bytes of tables`);
});

test("PieceCutter sends a piece after half a second when the source is slow", () => {
  const pieces = cut(clip("ts-188.ts").subarray(0, 400 * PACKET), { chunk: 1880, chunkMs: 100 });
  assert(pieces.length >= 40 / 6 - 1);
  for (let i = 1; i < pieces.length; i++) assert(pieces[i]!.timestampMs - pieces[i - 1]!.timestampMs <= 700);
});

test("PieceCutter marks a discontinuity when bytes or the source were lost", () => {
  const ts = clip("ts-188.ts");
  const cutter = new PieceCutter(16384, true);
  const first = [...cutter.push(ts.subarray(0, 300 * PACKET), 0), ...cutter.push(ts.subarray(300 * PACKET + 50), 1)];
  assertEquals(first.filter(({ flags }) => (flags & FLAG_DISCONTINUITY) !== 0).length, 1);
  assert(cutter.droppedBytes > 0);
  const rest = cutter.sourceLost();
  const after = cutter.push(ts, 2);
  assertEquals(rest.filter(({ flags }) => (flags & FLAG_DISCONTINUITY) !== 0).length, 0);
  assertEquals(after.map(({ flags }) => flags & FLAG_DISCONTINUITY).findIndex((flag) => flag !== 0), 0);
  const restarted = new PieceCutter(65536, false);
  assertEquals(restarted.push(ts, 0)[0]!.flags & FLAG_DISCONTINUITY, FLAG_DISCONTINUITY);
});

test("PieceCutter ends a broadcast of which nothing is under way with a packet that decoders drop", () => {
  const [piece, ...others] = new PieceCutter(65536, true).end(7);
  assertEquals([piece!.timestampMs, piece!.flags, piece!.data.length, others.length], [7, FLAG_END, 188, 0]);
  assertEquals([...piece!.data.subarray(0, 4)], [0x47, 0x1f, 0xff, 0x10]);
});

test("PieceCutter survives noise and damage with bounded pieces", () => {
  const random = seeded(8);
  const ts = clip("ts-188.ts");
  for (let round = 0; round < 40; round++) {
    const cutter = new PieceCutter(16384, true);
    const noisy = ts.slice();
    for (let i = 0; i < 400; i++) noisy[Math.floor(random() * noisy.length)] = Math.floor(random() * 256);
    let nowMs = 0;
    for (let at = 0; at < noisy.length;) {
      const take = 1 + Math.floor(random() * 20_000);
      const pieces = cutter.push(noisy.subarray(at, at + take), nowMs += 5);
      assert(pieces.every(({ data }) => data.length <= 16384 && data.length % PACKET === 0));
      at += take + (random() < 0.1 ? 33 : 0);
    }
    cutter.end(nowMs);
  }
});

test("BitrateMeter answers the average of ten seconds", () => {
  const meter = new BitrateMeter();
  assertEquals(meter.bytesPerS(0), null);
  for (let ms = 0; ms < 30_000; ms += 100) {
    meter.add(ms < 15_000 ? 1000 : 3000, ms);
    if (ms === 1000) assertEquals(meter.bytesPerS(ms), null);
    if (ms === 14_000) assert(Math.abs(meter.bytesPerS(ms)! - 10_000) < 800);
  }
  assert(Math.abs(meter.bytesPerS(30_000)! - 30_000) < 2000);
  assertEquals(meter.bytesPerS(60_000), 0);
});
