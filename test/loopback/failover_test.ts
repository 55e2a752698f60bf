/** A channel of two broadcasts over real connections: when one ends, the other continues in the same response. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { recordFailover } from "../support/failover.ts";
import { checkTs } from "../support/ts-check.ts";

test("getstream?item= continues with the channel's other broadcast in the same response when the first ends", async () => {
  const ts = await recordFailover("ts-mpeg2.ts");
  const { problems } = checkTs(ts, { isSegment: false });
  // The tables' counters jump on purpose, or a player might take the new tables for the old ones.
  const jumps = problems.filter((problem) => /PID (0|4096) counter/.test(problem));
  assertEquals(problems.filter((problem) => !/PCR gap|is short/.test(problem) && !jumps.includes(problem)), []);
  assertEquals(jumps.length, 4, "at one place alone");
  const maps = [...programmeMaps(ts)];
  const types = (at: number) => maps.at(at)!.types;
  assertEquals([types(0).includes(0x1b), types(-1).includes(0x02)], [true, true], "H.264 first, MPEG-2 in the end");
  assert(maps.at(0)!.version !== maps.at(-1)!.version, "another version of the table");
});

/** Version and kinds of streams of each PMT. */
function* programmeMaps(ts: Uint8Array): Generator<{ version: number; types: number[] }> {
  let mapPid = -1;
  for (let at = 0; at + 188 <= ts.length; at += 188) {
    const pid = ((ts[at + 1]! & 31) << 8) | ts[at + 2]!;
    if ((ts[at + 1]! & 0x40) === 0) continue;
    const payload = at + 4 + ((ts[at + 3]! & 0x20) !== 0 ? 1 + ts[at + 4]! : 0);
    const section = payload + 1 + ts[payload]!;
    if (pid === 0) mapPid = ((ts[section + 10]! & 31) << 8) | ts[section + 11]!;
    if (pid !== mapPid || ts[section] !== 2) continue;
    const end = section + 3 + (((ts[section + 1]! & 15) << 8) | ts[section + 2]!) - 4;
    const types: number[] = [];
    let entry = section + 12 + (((ts[section + 10]! & 15) << 8) | ts[section + 11]!);
    for (; entry < end; entry += 5 + (((ts[entry + 3]! & 15) << 8) | ts[entry + 4]!)) types.push(ts[entry]!);
    yield { version: (ts[section + 5]! >> 1) & 31, types };
  }
}
