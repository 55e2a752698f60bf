/** A channel of two broadcasts, each over real connections: when one ends, the other goes on in the same response. */
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { TOKEN } from "../api/support.ts";
import { type OnAir, onAir } from "../support/live.ts";
import { until } from "../support/until.ts";
import { checkTs } from "../support/ts-check.ts";

let first: OnAir;
let second: OnAir;
let ids: number[];

before(async () => {
  first = await onAir({ viewer: { accessToken: TOKEN } });
  second = await onAir({ clip: "ts-mpeg2.ts" });
  ids = [];
  for (const magnet of [first.magnet, second.magnet]) {
    // As a list names it: an item by a magnet.
    const list = `#EXTM3U\n#EXTINF:-1 tvg-id="one.tv",One\n${magnet}\n`;
    const query = new URLSearchParams({ method: "playlist_import", token: TOKEN });
    const body = new FormData();
    body.set("file", new File([list], "list.m3u"));
    const { result, error } = await (await fetch(`${first.viewer.url}/server/api?${query}`, { method: "POST", body }))
      .json();
    assertEquals(error, null);
    await finished(result.task_id);
  }
  const { result } = await call("playlist_get");
  ids = result.playlist.map(({ id }: { id: number }) => id);
  assertEquals(ids.length, 2);
});
after(async () => {
  await first?.close();
  await second?.close();
});

async function call(method: string, params: Record<string, string> = {}) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return await (await fetch(`${first.viewer.url}/server/api?${query}`)).json();
}

async function finished(task: number): Promise<void> {
  await until("the list is imported", async () => {
    const { result } = await call("get_task", { task_id: String(task) });
    assert(result.state !== "failed", result.error);
    return result.state === "done";
  });
}

test("getstream?item= goes on with the channel's other broadcast in the same response when its own ends", async () => {
  const leave = new AbortController();
  const response = await fetch(`${first.viewer.url}/engine/getstream?item=${ids[0]}`, {
    redirect: "manual",
    signal: leave.signal,
  });
  assertEquals([response.status, response.headers.get("content-type")], [200, "video/mp2t"]);
  const reader = response.body!.getReader();
  const parts: Uint8Array[] = [];
  const readTo = async (bytes: number) => {
    for (let count = 0; count < bytes;) {
      const { done, value } = await reader.read();
      assert(!done, "it goes on");
      parts.push(value);
      count += value.length;
    }
  };
  await readTo(60_000);
  await first.broadcast.close();
  first.input.end();
  // What was on its way, and then the other one's.
  await readTo(250_000);
  leave.abort();
  const ts = concatBytes(parts);
  const { problems } = checkTs(ts.subarray(0, ts.length - ts.length % 188), { isSegment: false });
  // The tables' counters jump on purpose, or a player might take the new tables for the old ones.
  const jumps = problems.filter((problem) => /PID (0|4096) counter/.test(problem));
  assertEquals(problems.filter((problem) => !/PCR gap|is short/.test(problem) && !jumps.includes(problem)), []);
  assertEquals(jumps.length, 4, "at one place alone");
  const types = new Set(streamTypes(ts));
  assert(types.has(0x1b) && types.has(0x02), `H.264 of the first, MPEG-2 of the second: ${[...types]}`);
});

/** Kinds of streams that the maps of programmes name. */
function* streamTypes(ts: Uint8Array): Generator<number> {
  let mapPid = -1;
  for (let at = 0; at + 188 <= ts.length; at += 188) {
    const pid = ((ts[at + 1]! & 31) << 8) | ts[at + 2]!;
    if ((ts[at + 1]! & 0x40) === 0) continue;
    const payload = at + 4 + ((ts[at + 3]! & 0x20) !== 0 ? 1 + ts[at + 4]! : 0);
    const section = payload + 1 + ts[payload]!;
    if (pid === 0) mapPid = ((ts[section + 10]! & 31) << 8) | ts[section + 11]!;
    if (pid !== mapPid || ts[section] !== 2) continue;
    const end = section + 3 + (((ts[section + 1]! & 15) << 8) | ts[section + 2]!) - 4;
    let entry = section + 12 + (((ts[section + 10]! & 15) << 8) | ts[section + 11]!);
    for (; entry < end; entry += 5 + (((ts[entry + 3]! & 15) << 8) | ts[entry + 4]!)) yield ts[entry]!;
  }
}
