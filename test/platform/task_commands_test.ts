/** `import` and `check` beside a running engine, and the line that shows progress. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { ProgressLine } from "../../platform/progress-line.ts";
import { quietFlags, run, start, withDirectory } from "./support.ts";

/** An engine waits here for several runs of the program, ms. */
const ENGINE_MS = 90_000;

test("millrace import and check run their task on a running engine and print the result", () =>
  withDirectory(async (directory) => {
    const engine = start(["serve", ...quietFlags(directory), "--log-format", "json"], {}, ENGINE_MS);
    try {
      const { http } = JSON.parse(await engine.firstLine);
      const here = ["--state-dir", path.join(directory, "state"), "--http-port", new URL(http).port];
      const list = path.join(directory, "list.m3u");
      writeFileSync(list, "#EXTM3U\n#EXTINF:-1,One\nudp://239.0.0.1:1\n#EXTINF:-1,Two\nudp://239.0.0.2:1\n");
      const imported = await run(["import", list, ...here]);
      assertEquals([imported.code, imported.stderr], [0, ""]);
      assertEquals(imported.stdout, "2 imported, 0 there already, 0 lines could not be read\n");
      const again = await run(["import", list, "--json", ...here]);
      const { state, done, skipped } = JSON.parse(again.stdout.trimEnd().split("\n").pop()!);
      assertEquals([state, done, skipped], ["done", 2, 2]);
      // Only players open such addresses.
      assertEquals((await run(["check", ...here])).stdout, "2 checked, 0 alive\n");
      assertEquals((await run(["check", "nothing like it", ...here])).stdout, "0 checked, 0 alive\n");
      const missing = await run(["import", path.join(directory, "none.m3u"), ...here]);
      assertEquals([missing.code, missing.stdout], [2, ""]);
      assertMatch(missing.stderr, /none\.m3u/);
      const nobody = await run(["check", "--state-dir", path.join(directory, "state"), "--http-port", "9"]);
      assertEquals(nobody.code, 2);
      assertMatch(nobody.stderr, /no engine responds at http:\/\/127\.0\.0\.1:9; start one/);
      assertMatch((await run(["import", ...here])).stderr, /import needs an M3U list/);
    } finally {
      engine.kill("SIGTERM");
      await engine.ended;
    }
  }));

test("ProgressLine writes one line again on a terminal, not too often, and nothing elsewhere", () => {
  let nowMs = 0;
  let written = "";
  const line = new ProgressLine({ isTTY: true, write: (text) => written += text }, () => nowMs);
  line.show("hashing", 1, 4);
  line.show("hashing", 2, 4);
  nowMs = 1000;
  line.show("hashing", 3, -1);
  line.end();
  line.end();
  assertEquals(written, "\r\x1b[Khashing 1 of 4 25 %\r\x1b[Khashing 3\r\x1b[K");
  written = "";
  new ProgressLine({ write: (text) => written += text }).show("hashing", 1, 4);
  assertEquals(written, "");
});
