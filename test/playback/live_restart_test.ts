import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { setUp } from "./live-setup.ts";

const NO_WISHES = { preferredAudioLanguage: null, transcode: null, hlsFormat: "auto" as const };

test("Sessions.openForSegment() finds the session that has the segment when a broadcast began again under its id", async () => {
  const { start, studio, sessions } = await setUp();
  await studio.run(4000);
  const ended = await start({ output: "hls" });
  await studio.run(8000);
  await studio.publisher.end();
  await studio.silence(200);
  assert(ended.stream.ended && !ended.stream.hasContinued);
  const client = { host: "127.0.0.1", owner: null, caller: "127.0.0.1" };
  const query = { infohashHex: studio.metainfo.infohashHex, fileIndex: undefined, ...NO_WISHES };
  const find = (n: number) => sessions.openForSegment({ ...query, n }, client, new AbortController().signal);
  const old = ended.stream.segments.map(({ n }) => n);
  await studio.run(8000);
  const running = await start({ output: "hls" });
  assert(running !== ended && running.stream !== ended.stream);
  await studio.run(4000);
  const fresh = running.stream.segments.map(({ n }) => n).filter((n) => !old.includes(n));
  assert(old.length > 0 && fresh.length > 0);
  for (const n of old) assertEquals((await find(n))?.id, ended.id, `segment ${n} of the old window`);
  for (const n of fresh) assertEquals((await find(n))?.id, running.id, `segment ${n} of the new window`);
  ended.stop("test");
  running.stop("test");
});

test("Sessions.open() brings a session of a broadcast that began again back to the new stream, once nobody reads the old one", async () => {
  const { start, studio, sessions } = await setUp();
  await studio.run(4000);
  const ended = await start();
  await studio.run(4000);
  const open = () => sessions.open(studio.metainfo.infohashHex, ended.id, "127.0.0.1", new AbortController().signal);
  await studio.publisher.end();
  await studio.silence(200);
  assertEquals(await open(), ended, "it is over");
  const reader = ended.openStream().getReader();
  await studio.run(8000);
  assertEquals(await open(), ended, "its end is being read");
  await reader.cancel();
  const again = await open();
  assert(again?.kind === "live" && again !== ended && !again.stream.ended && ended.stopped);
  assertEquals(again.id, ended.id);
  again.stop("test");
});
