import { test } from "node:test";
import path from "node:path";
import { assertEquals, assertMatch } from "@std/assert";
import { quietFlags, run, start, withDirectory } from "./support.ts";

test("millrace refuses a state or cache directory that another engine uses, and takes it once that was killed", () =>
  withDirectory(async (directory) => {
    const flags = quietFlags(directory);
    const first = start(flags);
    await first.firstLine;
    for (const other of ["state", "cache"]) {
      const mine = `--${other === "state" ? "cache" : "state"}-dir`;
      const { code, stderr, stdout } = await run([...flags, mine, path.join(directory, "own")]);
      assertEquals([code, stdout], [2, ""], stderr);
      assertMatch(stderr, new RegExp(`^millrace: --${other}-dir: another engine uses .*: end it first.*\\n$`));
    }
    // Pieces in memory need no directory.
    const third = start([...flags, "--state-dir", path.join(directory, "third"), "--cache", "ram"]);
    assertMatch(await third.firstLine, /^ready /);
    third.kill("SIGTERM");
    assertEquals((await third.ended).code, 0);
    first.child.kill("SIGKILL");
    await first.ended;
    const again = start(flags);
    assertMatch(await again.firstLine, /^ready /);
    again.kill("SIGTERM");
    assertEquals((await again.ended).code, 0);
  }));
