import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { tsBody } from "../../src/playback/output.ts";
import type { PlaybackSession } from "../../src/playback/session.ts";

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
