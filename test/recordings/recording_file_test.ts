/** The file of a recording on a real disk. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { RecordingFile } from "../../src/recordings/recording-file.ts";
import { temporaryDirectory } from "../support/engine.ts";

test("RecordingFile.load() gives segments the times that append() gave them, to the millisecond", async () => {
  const { files } = await loadPorts({ log: { level: "error" } });
  const directory = await temporaryDirectory();
  try {
    const first = await RecordingFile.load(files, `${directory.path}/one`);
    // Pictures of 24 Hz: the times of whole groups are no whole milliseconds.
    for (let i = 0; i < 3; i++) {
      const facts = { durationMs: 2291 + 2 / 3, startMs: 1_000_000 + i * (2291 + 2 / 3), discontinuity: i === 0 };
      await first.append(new Uint8Array(188), facts);
    }
    const { segments, durationMs } = first;
    await first.close();
    const second = await RecordingFile.load(files, `${directory.path}/one`);
    assertEquals([second.durationMs, second.segments], [durationMs, segments]);
    assertEquals(segments.map(({ durationMs }) => durationMs), [2292, 2292, 2292]);
  } finally {
    await directory.remove();
  }
});
