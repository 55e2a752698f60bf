/** mux.js, which we didn't write, takes our transport streams apart: the frames, bytes and times of the source. */
import { createRequire } from "node:module";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { MemorySource } from "../support/memory-source.ts";
import { openMatroska } from "../../src/media/index/mkv/open-matroska.ts";
import { openMp4 } from "../../src/media/index/mp4/open-mp4.ts";
import type { MediaIndex } from "../../src/media/model/timeline.ts";
import { collect, fixture, NEVER, openBytes } from "./support/files.ts";

interface Unit {
  readonly pts: number;
  readonly dts: number;
  /** NAL units of a picture, or one raw AAC frame. */
  readonly parts: Uint8Array[];
}

interface Stage {
  pipe(next: Stage): Stage;
  on(event: "data", listener: (data: Demuxed) => void): void;
  push(bytes: Uint8Array): void;
  flush(): void;
}

/** Events of the mux.js stages that are used here. */
interface Demuxed {
  readonly type?: string;
  readonly trackId: number;
  readonly pts: number;
  readonly dts: number;
  readonly data: Uint8Array;
  readonly nalUnitType?: string;
}

const muxjs = createRequire(import.meta.url)("mux.js") as {
  mp2t: Record<"TransportPacketStream" | "TransportParseStream" | "ElementaryStream", new () => Stage>;
  codecs: { h264: { H264Stream: new () => Stage }; Adts: new () => Stage };
};

/** NAL units that only one of both sides writes: delimiters, and parameter sets that MP4 and Matroska keep apart. */
const APART = new Set([7, 8, 9]);
const DELIMITER = 9;

/** Demultiplexes with mux.js: pictures, and AAC frames. */
function demux(ts: Uint8Array): { video: Unit[]; audio: Unit[] } {
  const video: Unit[] = [];
  const audio: Unit[] = [];
  const packets = new muxjs.mp2t.TransportPacketStream();
  const elementary = new muxjs.mp2t.ElementaryStream();
  const h264 = new muxjs.codecs.h264.H264Stream();
  const adts = new muxjs.codecs.Adts();
  packets.pipe(new muxjs.mp2t.TransportParseStream()).pipe(elementary);
  elementary.pipe(h264);
  elementary.pipe(adts);
  h264.on("data", ({ pts, dts, data }) => {
    // mux.js reports a NAL unit when the next one begins, with the times of that one: only the delimiter gets its own.
    if ((data[0]! & 31) === DELIMITER) video.push({ pts, dts, parts: [] });
    else if (!APART.has(data[0]! & 31)) video.at(-1)!.parts.push(data);
  });
  adts.on("data", ({ pts, dts, data }) => audio.push({ pts, dts, parts: [data] }));
  packets.push(ts);
  packets.flush();
  return { video, audio };
}

/** NAL units with 4-byte lengths before them. */
function nalUnits(data: Uint8Array): Uint8Array[] {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const units: Uint8Array[] = [];
  for (let at = 0; at + 4 <= data.length;) {
    const length = view.getUint32(at);
    units.push(data.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return units.filter((unit) => !APART.has(unit[0]! & 31));
}

/** The access units of the first video and the first audio track in the source. */
async function sourceUnits(index: MediaIndex, bytes: Uint8Array): Promise<{ video: Unit[]; audio: Unit[] }> {
  const lists: { video: Unit[]; audio: Unit[] } = { video: [], audio: [] };
  const firsts = ["video", "audio"].map((kind) => index.tracks.findIndex((track) => track.kind === kind));
  const add = (track: number, pts: number, dts: number, data: Uint8Array) => {
    if (track === firsts[0]) lists.video.push({ pts, dts, parts: nalUnits(data) });
    else if (track === firsts[1]) lists.audio.push({ pts, dts, parts: [data] });
  };
  const { timeline } = index;
  if (timeline.kind === "streamed") {
    for (const run of timeline.runs) {
      const batches = timeline.readRun(run.index, new Set(firsts), new MemorySource(bytes), NEVER);
      for await (const batch of batches) for (const s of batch) add(s.track, s.pts90k, s.dts90k, s.data);
    }
    return lists;
  }
  for (const track of firsts) {
    const table = timeline.tables[track];
    for (let i = 0; table != null && i < table.count; i++) {
      const dts = table.dts90k.at(i);
      const data = bytes.subarray(table.offsets.at(i), table.offsets.at(i) + table.sizes.at(i));
      add(track, dts + (table.ptsShift90k?.at(i) ?? 0), dts, data);
    }
  }
  return lists;
}

/** `units` from their own zero: the multiplexer adds one constant to all times. */
const since = (zero: number, units: readonly Unit[]) =>
  units.map((
    { pts, dts, parts },
  ) => [Math.round(pts - zero), Math.round(dts - zero), ...parts.map((part) => part.length)]);

const CLIPS = [
  "mp4-end.mp4",
  "mp4-24fps.mp4",
  "mp4-60fps.mp4",
  "mp4-vfr.mp4",
  "mp4-open-gop.mp4",
  "mp4-audio-delay.mp4",
  "mp4-video-delay.mp4",
  "mp4-fragmented-sidx.mp4",
  "mp4-fragmented-bare.mp4",
  "mkv-cues.mkv",
  "mkv-no-cues.mkv",
  "mkv-24fps.mkv",
  "mkv-vfr.mkv",
  "mkv-open-gop.mkv",
];

for (const name of CLIPS) {
  test(`mux.js finds the frames, bytes and times of ${name} in its transport stream`, async () => {
    const bytes = fixture(name);
    const open = name.endsWith("mkv") ? openMatroska : openMp4;
    const wanted = await sourceUnits(await open(new MemorySource(bytes), { fileName: name, signal: NEVER }), bytes);
    const { ts } = await openBytes(bytes);
    const found = demux(await collect(ts.read(0, null, new MemorySource(bytes), NEVER)));
    assert(wanted.video.length > 80 && wanted.audio.length > 200);
    const zero = found.video[0]!.dts - Math.round(wanted.video[0]!.dts);
    assertEquals(since(zero, found.video), since(0, wanted.video));
    assertEquals(found.audio.length, wanted.audio.length);
    for (const kind of ["video", "audio"] as const) {
      for (const [i, unit] of found[kind].entries()) {
        assert(unit.parts.every((part, n) => equal(part, wanted[kind][i]!.parts[n]!)), `${kind} ${i} differs`);
        // Matroska rounds to milliseconds; frames of sound in one PES follow their first one exactly.
        const roundedTicks = kind === "audio" && name.endsWith("mkv") ? 109 : 1;
        assert(
          Math.abs(unit.pts - zero - wanted[kind][i]!.pts) <= roundedTicks,
          `${kind} ${i} is at another time`,
        );
      }
    }
  });
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
