import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { segmentBody, tsBody } from "../../src/playback/output.ts";
import type { PlaybackSession } from "../../src/playback/session.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { FakeSwarm, FakeSwarms, makeSessions, startRequest } from "./support.ts";

test("tsBody() has each player of a stream without a length read for itself: none can go on where what another made ends", () => {
  const readingOf = (sizeBytes: number | null) => {
    let way = "";
    const stream = (name: string) => () => {
      way = name;
      return new ReadableStream<Uint8Array>();
    };
    const session = {
      kind: "file",
      identity: { output: "ts", infohashHex: "00" },
      file: { index: 0 },
      presentation: { ts: { sizeBytes, fingerprint: "one" } },
      stream: stream("alone"),
      streamShared: stream("shared"),
    };
    tsBody(session as unknown as PlaybackSession)!.open(0, null);
    return way;
  };
  assertEquals([readingOf(null), readingOf(1880)], ["alone", "shared"]);
});

test("segmentBody() of the first segment takes over from the beginning that is fetched ahead for HLS", async () => {
  const swarm = new FakeSwarm([{ name: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  const sessions = makeSessions(new FakeClock(), new FakeSwarms(swarm));
  const session = await sessions.start(startRequest(swarm.infohashHex, { output: "hls" }));
  await until("the prebuffer is full", () => !session.prebuffering && swarm.readers.size === 1);
  const segment = segmentBody(session, 0)!.open().getReader();
  for (let chunk = await segment.read(); !chunk.done; chunk = await segment.read());
  assertEquals(swarm.readers.size, 0);
  session.stop("test");
});
