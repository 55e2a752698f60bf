/** Segments of broadcasts as fragmented MP4. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { type LiveForm, liveForm, liveFragments } from "../../../src/media/mux/cmaf/live/fragments.ts";
import { PesReader } from "../../../src/media/mux/cmaf/live/pes-reader.ts";
import { unitMaker } from "../../../src/media/mux/cmaf/live/tracks.ts";
import type { Track } from "../../../src/media/model/types.ts";
import { checkTs } from "../../support/ts-check.ts";
import { collect, fixture, NEVER, openBytes, seeded } from "../support/files.ts";

async function* chunks(bytes: Uint8Array, sizeBytes = 70_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += sizeBytes) yield await Promise.resolve(bytes.slice(at, at + sizeBytes));
}

async function formOf(name: string): Promise<{ readonly form: LiveForm; readonly tracks: readonly Track[] }> {
  const bytes = fixture(name);
  const { outputTracks: tracks } = await openBytes(bytes);
  return { form: await liveForm(chunks(bytes), tracks, NEVER), tracks };
}

/** Sizes of the access units of each track in `mp4`, by its number. */
function unitsIn(mp4: Uint8Array): Map<number, number[]> {
  const view = new DataView(mp4.buffer, mp4.byteOffset, mp4.length);
  const sizes = new Map<number, number[]>();
  let track = 0;
  const walk = (from: number, to: number) => {
    for (let at = from; at + 8 <= to; at += view.getUint32(at)) {
      const type = new TextDecoder("latin1").decode(mp4.subarray(at + 4, at + 8));
      const end = at + view.getUint32(at);
      if (type === "moof" || type === "traf") walk(at + 8, end);
      if (type === "tfhd") track = view.getUint32(at + 12);
      if (type !== "trun") continue;
      const unitBytes = (view.getUint32(at + 8) & 0x800) !== 0 ? 16 : 8;
      const own = sizes.get(track) ?? [];
      for (let unit = at + 20; unit < end; unit += unitBytes) own.push(view.getUint32(unit + 4));
      sizes.set(track, own);
    }
  };
  walk(0, mp4.length);
  return sizes;
}

for (
  const [name, codecs, size] of [
    ["ts-188.ts", [/^avc1\.[0-9A-F]{6}$/, /^mp4a\.40\.2$/], [160, 90]],
    ["ts-hevc.ts", [/^hvc1\.1\.6\.L\d+/, /^ec-3$/], [160, 90]],
  ] as const
) {
  test(`liveForm() and liveFragments() carry all of ${name}, whatever the chunks`, async () => {
    const { form, tracks } = await formOf(name);
    assertEquals(form.codecs.length, codecs.length);
    for (const [i, codec] of codecs.entries()) assert(codec.test(form.codecs[i]!), form.codecs[i]);
    const { width, height } = form.streams[0]!.track;
    assertEquals([width, height], size);
    const bytes = fixture(name);
    const options = { number: 1, start90k: 126_000, durationMs: 6000, following: null };
    const make = (chunkBytes: number) =>
      collect(liveFragments(chunks(bytes, chunkBytes), tracks, form, options, NEVER));
    const made = await make(70_000);
    assertEquals(await make(1000), made);
    const counts = unitsIn(made);
    const [pictures] = checkTs(bytes).streams;
    assertEquals(counts.get(1)!.length, pictures!.units.length);
    assert(counts.get(2)!.length > 150);
  });
}

test("liveForm() refuses a broadcast whose pictures fragmented MP4 does not carry, and takes sound alone", async () => {
  const error = await assertRejects(() => formOf("ts-mpeg2.ts"), MillraceError, "mpeg2video");
  assertEquals(error.code, "unsupported_media");
  assertEquals((await formOf("ts-audio-only.ts")).form.codecs.length, 1);
});

test("PesReader and the makers of units survive any packets", async () => {
  const random = seeded(4);
  for (const name of ["ts-188.ts", "ts-hevc.ts"]) {
    const whole = fixture(name).slice(0, 188 * 200);
    const { outputTracks } = await openBytes(fixture(name));
    for (let round = 0; round < 30; round++) {
      const bytes = whole.slice();
      for (let i = 0; i < 40; i++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      const makers = new Map(outputTracks.map((track) => [track.id, unitMaker(track)!]));
      const reader = new PesReader([...makers.keys()], 0);
      for (const pes of [...reader.push(bytes), ...reader.finish()]) makers.get(pes.pid)!.push(pes);
      for (const maker of makers.values()) {
        for (const { data, pts90k } of maker.take(true)) assert(data.length <= bytes.length && Number.isFinite(pts90k));
      }
    }
  }
});
