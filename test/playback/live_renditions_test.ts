/** A broadcast of several sounds: what its multivariant playlist says, and its pictures and sounds one by one. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import type { LiveSession } from "../../src/playback/live/live-session.ts";
import type { LivePart } from "../../src/playback/live/live-fragments.ts";
import { checkTs, ticksBetween } from "../support/ts-check.ts";
import { NEVER } from "../media/support/files.ts";
import { setUp } from "./live-setup.ts";
import { EndlessClip, twoSounds } from "./live-support.ts";

async function onAir() {
  const { clip, durationS } = await twoSounds();
  const world = await setUp({ media: new EndlessClip(clip, durationS) });
  await world.studio.run(3000);
  const session = await world.start({ output: "hls" });
  await world.studio.run(9000);
  return { ...world, session };
}

const bytesOf = async (body: ReadableStream<Uint8Array>) => new Uint8Array(await new Response(body).arrayBuffer());

/** Time at which the first fragment of a segment begins, 90 kHz. */
function timeOf(bytes: Uint8Array): number {
  const at = new TextDecoder("latin1").decode(bytes).indexOf("tfdt");
  return Number(new DataView(bytes.buffer).getBigUint64(at + 8));
}

async function playlistOf(session: LiveSession, part: LivePart, isFragmented: boolean): Promise<string> {
  const init = isFragmented ? (first: number) => `${first}.mp4` : undefined;
  return (await session.playlist(String, NEVER, init, part))!;
}

test("LiveSession.facts() names the sounds that segments carry, the wanted one first, and the bit rate", async () => {
  const { start, studio, session } = await onAir();
  const facts = (await session.facts(false, NEVER))!;
  assertEquals(facts.sounds.map(({ track, codecs }) => [track.language, codecs]), [
    ["eng", "mp4a.40.2"],
    ["ger", "ac-3"],
  ]);
  assert(facts.video!.codecs!.startsWith("avc1.") && facts.video!.track.width! > 0);
  assertEquals(facts.captions, []);
  assert(facts.averageBandwidth > 0 && facts.bandwidth >= facts.averageBandwidth);
  const german = await start({ output: "hls", preferredAudioLanguage: "de", pid: "de" });
  assertEquals((await german.facts(true, NEVER))!.sounds.map(({ codecs }) => codecs), ["ac-3", "mp4a.40.2"]);
  assertEquals(await (await start({ pid: "ts" })).facts(false, NEVER), null);
  await studio.publisher.end();
});

test("LiveSession.openSegment() of a part has the pictures alone, or one sound alone, in MPEG TS", async () => {
  const { session } = await onAir();
  const { sounds, video } = (await session.facts(false, NEVER))!;
  const lists = await Promise.all(
    (["pictures", ...sounds.map(({ track }) => track.id)] as const).map((part) => playlistOf(session, part, false)),
  );
  assertEquals(new Set(lists).size, 1, "the same numbers and times");
  const segment = session.segment(Number(/\n(\d+)\n/.exec(lists[0]!)![1]) + 1)!;
  for (const part of ["pictures", ...sounds.map(({ track }) => track.id)] as const) {
    const { streams } = checkTs(await bytesOf(session.openSegment(segment, false, part)), { isRange: true });
    assertEquals(streams.map(({ pid }) => pid), [part === "pictures" ? video!.track.id : part]);
    assert(streams[0]!.units.length > 1);
    assertLess(Math.abs(ticksBetween(streams[0]!.units[0]!.pts, segment.start90k)), 90_000);
  }
});

test("LiveSession.openSegment() of a part in fragmented MP4 has the time of the pictures beside it", async () => {
  const { session } = await onAir();
  const { sounds } = (await session.facts(true, NEVER))!;
  for (const { track: { id }, codecs } of sounds) {
    const list = await playlistOf(session, id, true);
    const numbers = list.split("\n").filter((line) => /^\d+$/.test(line)).map(Number);
    assertEquals(list.match(/#EXT-X-MAP:.*/g), [`#EXT-X-MAP:URI="${numbers[0]}.mp4"`]);
    const init = new TextDecoder("latin1").decode(session.initSegment(numbers[0]!, id)!);
    assert(init.includes(codecs === "ac-3" ? "dac3" : "mp4a") && !init.includes("avcC"));
    // Where the clip begins again it has no sound for a while.
    for (const n of numbers.slice(1)) {
      const segment = session.segment(n)!;
      const off90k = timeOf(await bytesOf(session.openSegment(segment, true, id))) - segment.start90k;
      assert(off90k >= 0 && off90k < 18_000, `${off90k} in segment ${n}`);
    }
  }
  const pictures = new TextDecoder("latin1").decode(
    session.initSegment(Number(/(\d+)\.mp4/.exec(await playlistOf(session, "pictures", true))![1]), "pictures")!,
  );
  assert(pictures.includes("avcC") && !pictures.includes("mp4a"));
});
