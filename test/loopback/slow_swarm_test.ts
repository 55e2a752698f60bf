/** A slow swarm: outputs begin as soon as they have what they need. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { type SeededFiles, seedFiles, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { repeatTs } from "../media/ts-input-support.ts";
import { startSession, statOf } from "./support.ts";

const KIB = 1024;
/** Each test takes as long as its bytes do. */
const BYTES_PER_SECOND = 256 * KIB;
/** Bytes that may have arrived beyond those needed when the test looks: a piece being read ahead, and one under way. */
const SLACK_BYTES = 256 * KIB;

let seeder: SeededFiles;
before(async () => {
  const film = repeatTs(clip("ts-188.ts"), 60, 6 * 90_000);
  seeder = await seedFiles([{ path: "film.ts", bytes: film }], {
    pieceLengthBytes: 64 * KIB,
    engine: { uploadLimitBytesPerSecond: BYTES_PER_SECOND },
  });
});
after(() => seeder?.close());

for (
  const [path, neededBytes] of [["getfile", 64 * KIB], ["getstream", 64 * KIB], ["manifest.m3u8", 512 * KIB]] as const
) {
  test(`${path} of a transport stream begins after ${neededBytes / KIB} KiB of it`, async () => {
    const served = await serveEngine();
    try {
      const started = await startSession(served, path, { magnet: seeder.magnet });
      let url = started.playback_url;
      if (path === "manifest.m3u8") {
        url = (await (await fetch(url)).text()).split("\n").find((line) => line.startsWith("http"))!;
      }
      const response = await fetch(url);
      assertEquals(response.status, 200);
      const reader = response.body!.getReader();
      assert((await reader.read()).value!.length > 0);
      assertLess(Number((await statOf(started))["downloaded"]), neededBytes + SLACK_BYTES);
      await reader.cancel();
    } finally {
      await served.close();
    }
  });
}
