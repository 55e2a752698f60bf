import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { LiveReader } from "../../src/playback/live/live-reader.ts";
import { LiveCuts, type LiveSegment } from "../../src/playback/live/live-cuts.ts";
import { LiveStream } from "../../src/playback/live/live-stream.ts";
import { checkTs, ticksBetween } from "../support/ts-check.ts";
import { Studio } from "./live-support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { writeStamp } from "../../src/bytes/ts/stamps.ts";

const never = new AbortController().signal;
const ROOM = { windowMs: 60_000, maxBytes: 2 ** 30 };

/** Clips and how long one pass of them lasts, s. */
const CLIPS: readonly (readonly [string, number])[] = [
  ["ts-188.ts", 6],
  ["ts-mpeg2.ts", 6],
  ["ts-hevc.ts", 6],
  ["ts-open-gop.ts", 6],
  ["ts-audio-only.ts", 5.8],
  ["ts-two-programs.ts", 6],
  ["ts-wrap.ts", 6],
];

/** Clips have too few clock values where they start over, and in sound alone; all other faults would be ours. */
function problems(ts: Uint8Array, isSegment: boolean): string[] {
  return checkTs(ts, { isSegment }).problems.filter((problem) => !problem.includes("PCR gap"));
}

/** Collects the stream in `parts`; resolves at its end. */
async function collect(reader: LiveReader, parts: Uint8Array[], signal = never): Promise<void> {
  for await (const bytes of reader.read(signal)) parts.push(bytes);
}

async function segmentBytes(stream: LiveStream, segment: LiveSegment): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const bytes of stream.readSegment(segment, null, never)) parts.push(bytes);
  return concatBytes(parts);
}

/** PIDs of packets whose discontinuity_indicator is set, in order. */
function marks(ts: Uint8Array): number[] {
  const pids: number[] = [];
  for (let at = 0; at < ts.length; at += 188) {
    const marked = (ts[at + 3]! & 0x20) !== 0 && ts[at + 4]! > 0 && (ts[at + 5]! & 0x80) !== 0;
    if (marked) pids.push(((ts[at + 1]! & 31) << 8) | ts[at + 2]!);
  }
  return pids;
}

const pidAt = (ts: Uint8Array, packet: number) => ((ts[packet * 188 + 1]! & 31) << 8) | ts[packet * 188 + 2]!;

for (const [clip, durationS] of CLIPS) {
  test(`LiveReader outputs ${clip} from PAT, PMT and a random access point to its end`, async () => {
    const studio = await Studio.open({ clip, durationS });
    const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
    const parts: Uint8Array[] = [];
    const done = collect(new LiveReader(stream), parts);
    await studio.run(15_000);
    await studio.publisher.end();
    await studio.silence(200);
    await done;
    const ts = concatBytes(parts);
    // The checker knows one program only.
    assertEquals(problems(ts, false).filter((one) => !(clip.includes("programs") && one.includes("PCR"))), []);
    assertEquals([pidAt(ts, 0), marks(ts)], [0, []]);
    const report = checkTs(ts, { isSegment: false });
    const main = report.streams.find(({ streamType }) => [0x02, 0x1b, 0x24].includes(streamType)) ?? report.streams[0]!;
    assert(main.units[0]!.randomAccess);
    assertLess(14, ticksBetween(main.units.at(-1)!.pts, main.units[0]!.pts) / 90_000);
    stream.close();
  });

  test(`LiveStream.readSegment() returns each access unit of ${clip} once, in independent segments`, async () => {
    const studio = await Studio.open({ clip, durationS });
    const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
    await studio.run(15_000);
    await studio.publisher.end();
    await studio.silence(200);
    const whole: Uint8Array[] = [];
    const segments: Uint8Array[] = [];
    for (const segment of stream.segments) {
      const bytes = await segmentBytes(stream, segment);
      assertEquals(problems(bytes, true), [], `segment ${segment.n}`);
      assertEquals([pidAt(bytes, 0), segment.discontinuity], [0, false]);
      segments.push(bytes);
    }
    const oldest = stream.pointFrom(0);
    await collect(new LiveReader(stream, oldest), whole);
    const pids = stream.segments[0]!.program.tracks.map((track) => track.id);
    const times = (ts: Uint8Array) =>
      checkTs(ts, { isSegment: false }).streams.filter(({ pid }) => pids.includes(pid))
        .map(({ pid, units }) => ({ pid, dts: units.map(({ dts }) => dts) }));
    const expected = times(concatBytes(whole));
    for (const { pid, dts } of expected) {
      const made = segments.flatMap((segment) => times(segment).find((stream) => stream.pid === pid)?.dts ?? []);
      // A last picture without sound is no segment; besides that nothing is left out, and nothing comes twice.
      assertEquals(made, dts.slice(0, made.length), `PID ${pid}`);
      assertLess(dts.length - made.length, 13);
    }
    const mediaMs = stream.segments.reduce((sum, segment) => sum + segment.durationMs, 0);
    assertLess(14_000, mediaMs);
    stream.close();
  });
}

test("LiveReader and LiveCuts skip a gap to the next random access point and mark it", async () => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
  const gaps: { fromMs: number; toMs: number }[] = [];
  stream.onGap((gap) => gaps.push(gap));
  const parts: Uint8Array[] = [];
  const done = collect(new LiveReader(stream), parts);
  await studio.run(6000);
  studio.losing = true;
  await studio.run(3000);
  studio.losing = false;
  await studio.run(8000);
  await studio.publisher.end();
  await studio.silence(200);
  await done;
  assertEquals(gaps.length, 1);
  assertLess(Math.abs(gaps[0]!.toMs - gaps[0]!.fromMs - 3500), 1500);
  const ts = concatBytes(parts);
  assertEquals(marks(ts).sort(), [0x100, 0x101]);
  // The last picture before the gap is cut short; nothing else is wrong, counters least of all.
  assertEquals(problems(ts, false).filter((problem) => !/is short|runs back/.test(problem)), []);
  assertEquals(stream.segments.filter((segment) => segment.discontinuity).length, 1);
  for (const segment of stream.segments) {
    assertEquals(problems(await segmentBytes(stream, segment), true).filter((one) => !one.includes("short")), []);
  }
  const video = checkTs(ts, { isSegment: false }).streams.find(({ pid }) => pid === 0x100)!;
  const jump = video.units.findIndex((unit, i) => i > 0 && ticksBetween(unit.dts, video.units[i - 1]!.dts) > 90_000);
  assert(jump > 0 && video.units[jump]!.randomAccess, "playing goes on at a random access point");
  stream.close();
});

test("LiveReader restarts after a discontinuity marked by the broadcaster", async () => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
  const parts: Uint8Array[] = [];
  const done = collect(new LiveReader(stream), parts);
  await studio.run(5300);
  await studio.publisher.sourceLost();
  await studio.run(6000);
  await studio.publisher.end();
  await studio.silence(200);
  await done;
  assertEquals(marks(concatBytes(parts)).sort(), [0x100, 0x101]);
  assertEquals(stream.segments.map((segment) => segment.discontinuity).filter(Boolean).length, 1);
  stream.close();
});

test("LiveReader that stalls loses its place when the window has left it, and holds no memory", async () => {
  const studio = await Studio.open({ windowS: 10 });
  const stream = new LiveStream(studio, studio.clock, { limits: { windowMs: 20_000, maxBytes: 2 ** 30 } });
  const reader = new LiveReader(stream);
  const bytes = reader.read(never);
  await studio.run(4000);
  const first = (await bytes.next()).value!;
  await studio.run(60_000);
  // 30 s of 22 kB/s, grace included, whatever the reader does.
  assertLess(stream.window.usedBytes, 800_000);
  const ts = concatBytes([first, (await bytes.next()).value!]);
  assertEquals(marks(ts).sort(), [0x100, 0x101]);
  const behindMs = stream.window.newestMs! - stream.window.timeOf(reader.position!);
  assertLess(behindMs, 3000);
  // Half a unit of sound and of picture are left from before.
  assertEquals(problems(ts, false).filter((problem) => !/is short|runs back/.test(problem)), []);
  stream.close();
});

test("LiveStream serves many readers of different speed from one window", async () => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
  const all = Array.from({ length: 20 }, () => [] as Uint8Array[]);
  await studio.run(3000);
  const done = all.map((parts) => collect(new LiveReader(stream), parts));
  const idle = new LiveReader(stream).read(never);
  await idle.next();
  await studio.run(6000);
  await studio.publisher.end();
  await studio.silence(200);
  await Promise.all(done);
  const sizes = all.map((parts) => concatBytes(parts).length);
  assertEquals(new Set(sizes).size, 1);
  assertLess(100_000, sizes[0]!);
  stream.close();
});

test("LiveReader.seek() goes to the random access point before a time and back to the edge, marked", async () => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
  await studio.run(20_000);
  const reader = new LiveReader(stream);
  const bytes = reader.read(never);
  const parts = [(await bytes.next()).value!];
  const wantedMs = stream.window.newestMs! - 12_000;
  reader.seek(stream.pointAt(wantedMs));
  const behindMs = wantedMs - stream.window.timeOf(reader.position!);
  assert(behindMs >= 0 && behindMs < 2100, `${behindMs} ms`);
  parts.push((await bytes.next()).value!);
  reader.seek(null);
  parts.push((await bytes.next()).value!);
  assertEquals(marks(concatBytes(parts)).sort(), [0x100, 0x100, 0x101, 0x101]);
  stream.close();
});

test("LiveStream numbers segments once and for all while the window slides", async () => {
  const studio = await Studio.open({ windowS: 10 });
  const stream = new LiveStream(studio, studio.clock, { limits: { windowMs: 10_000, maxBytes: 2 ** 30 } });
  const seen = new Map<number, string>();
  let last = -1;
  for (let round = 0; round < 40; round++) {
    if (round === 10) await studio.publisher.sourceLost();
    await studio.run(1000);
    const { segments } = stream;
    assert(segments.every(({ n }, i) => i === 0 || n === segments[i - 1]!.n + 1));
    assert((segments[0]?.n ?? last) >= last);
    last = segments[0]?.n ?? last;
    for (const { n, firstPacket, durationMs } of segments) {
      const told = `${firstPacket} ${durationMs}`;
      assertEquals(seen.get(n) ?? told, told);
      seen.set(n, told);
      assert(firstPacket >= stream.window.base, "what the playlist names can be fetched");
    }
  }
  assertEquals(stream.cuts.droppedDiscontinuities, 1);
  assertLess(segmentSpan(stream), 12_500);
  stream.close();
});

function segmentSpan(stream: LiveStream): number {
  return stream.segments.reduce((sum, segment) => sum + segment.durationMs, 0);
}

test("LiveStream keeps no more bytes than its limit", async () => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: { windowMs: 60_000, maxBytes: 200_000 } });
  await studio.run(30_000);
  assertLess(stream.window.usedBytes, 200_001);
  assert(stream.segments.length > 0);
  stream.close();
});

test("LiveStream.close() releases the feed, its timer and all waiting readers", async () => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
  const waits = stream.grown(never);
  stream.close();
  await waits;
  assertEquals((studio.clock as { pendingTimers?: number }).pendingTimers, 0);
});

test("LiveCuts emits no segment before a gap that is too short or has no sound, where browsers would stop", async () => {
  for (let passedMs = 6000; passedMs < 8500; passedMs += 200) {
    const studio = await Studio.open();
    const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
    await studio.run(passedMs);
    await studio.publisher.sourceLost();
    await studio.run(4000);
    for (const segment of stream.segments) {
      const { streams } = checkTs(await segmentBytes(stream, segment));
      assert(segment.durationMs >= 500 && streams.length === 2, `${passedMs}: ${segment.durationMs} ms`);
      assert(
        streams.every(({ units }) => units.length > 0),
        `${passedMs}: ${streams.map(({ units }) => units.length)}`,
      );
    }
    stream.close();
  }
});

test("LiveStream of a broadcast that was joined before begins with what the swarm still holds", async () => {
  const studio = await Studio.open();
  await studio.run(20_000);
  const stream = new LiveStream(studio, studio.clock, {
    limits: { windowMs: 15_000, maxBytes: 2 ** 30 },
    leastNumber: 7,
  });
  assertLess(12_000, stream.window.newestMs! - stream.window.oldestMs!);
  assertLess(stream.window.newestMs! - stream.window.oldestMs!, 18_500);
  assertLess(5, stream.segments.length);
  // A reader that begins now still begins at the edge.
  assertLess(stream.window.newestMs! - stream.window.timeOf(stream.startPoint()!.packet), 3000);
  const ts = await segmentBytes(stream, stream.segments[0]!);
  assertEquals(problems(ts, true), []);
  stream.close();
  const least = stream.cuts.next! + 1000;
  const next = new LiveStream(studio, studio.clock, { limits: ROOM, leastNumber: least });
  assertEquals(next.cuts.segments[0]!.n, least);
  next.close();
});

test("LiveStream.readSegment() begins what continues nothing with pictures and sound at once", async () => {
  let leads = 0;
  for (let lostMs = 1000; lostMs < 3000; lostMs += 300) {
    const studio = await Studio.open();
    const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
    await studio.run(6000);
    studio.losing = true;
    await studio.run(lostMs);
    studio.losing = false;
    await studio.run(6000);
    for (const [i, segment] of stream.segments.entries()) {
      const { streams } = checkTs(await segmentBytes(stream, segment));
      const [video, sound] = [0x100, 0x101].map((pid) => streams.find((one) => one.pid === pid)!.units[0]!.pts);
      const leadS = ticksBetween(video!, sound!) / 90_000;
      if (i === 0 || segment.discontinuity) assert(Math.abs(leadS) < 0.2, `${lostMs}, ${i}: ${leadS} s`);
      else if (leadS > 0.2) leads++;
    }
    stream.close();
  }
  // The continued stream keeps all of its sound.
  assert(leads > 0);
});

test("LiveCuts leaves early sound in where a segment would have none", async () => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: ROOM });
  await studio.run(6000);
  const { program } = stream.segments[0]!;
  stream.close();
  const least = (soundAt90k: readonly number[]) => {
    const cuts = new LiveCuts({ leastNumber: 0, timeOf: (packet) => packet * 1000, onPoint: () => {} });
    let packets = 0;
    const unit = (pid: number, pts90k: number) => {
      const bytes = new Uint8Array(188).fill(0xff);
      bytes.set([0x47, 0x40 | (pid >> 8), pid & 255, 0x10, 0, 0, 1, 0xe0, 0, 180 - 2, 0x80, 0x80, 5]);
      writeStamp(bytes, 13, 2, pts90k);
      cuts.packet(pid, bytes, 0, packets++, pid === program.main.id ? pts90k : null);
    };
    const sound = program.tracks.find(({ id }) => id !== program.main.id)!.id;
    for (const [i, pts90k] of [100_000, 280_000].entries()) {
      cuts.point({ packet: packets, run: 0, program, pts90k, tables: [] });
      unit(program.main.id, pts90k);
      if (i === 0) { for (const at of soundAt90k) unit(sound, at); }
    }
    unit(sound, 281_000);
    return cuts.segments[0]!.leastPts90k;
  };
  assertEquals([least([50_000, 86_000]), least([50_000, 87_000]), least([])], [null, 86_500, 86_500]);
});
