/** Low-latency HLS of a broadcast: its playlists, parts, and requests that wait. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { type OnAir, onAir } from "../support/live.ts";

let air: OnAir;
let url: string;
before(async () => {
  air = await onAir({ viewer: { lowLatency: true } });
  const query = new URLSearchParams({ magnet: air.magnet, format: "json", playlist_output_format_live: "fmp4" });
  const { response, error } = await (await fetch(`${air.viewer.url}/engine/manifest.m3u8?${query}`)).json();
  assertEquals(error, null);
  url = response.playback_url;
});
after(async () => {
  await air?.close();
});

const list = async (query = "") => await (await fetch(`${url}${query}`)).text();
const numberIn = (text: string, tag: string) => Number(new RegExp(`#EXT-X-${tag}:(\\d+)`).exec(text)?.[1]);
const count = (text: string, line: RegExp) => text.split("\n").filter((one) => line.test(one)).length;
/** Number of the segment that grows, and how many of its parts are there. */
function edge(text: string): { n: number; p: number } {
  const [, n, p] = /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="[^"]*\/(\d+)\.(\d+)\.m4s"/.exec(text)!;
  return { n: Number(n), p: Number(p) };
}
const bytesAt = async (address: string) => {
  const response = await fetch(address);
  return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) };
};

test("a playlist with low latency lists parts of a third of a second that make up their segments", async () => {
  const text = await list();
  assertMatch(text, /#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1\.050,CAN-SKIP-UNTIL=\d+\.0/);
  assertMatch(text, /#EXT-X-PART-INF:PART-TARGET=0\.350/);
  const blocks = text.split(/#EXT-X-PROGRAM-DATE-TIME[^\n]*\n/).slice(1).filter((block) => block.includes("#EXTINF"));
  const parted = blocks.filter((block) => block.includes("#EXT-X-PART:"));
  assert(parted.length > 0, text);
  for (const block of parted) {
    const parts = [...block.matchAll(/#EXT-X-PART:DURATION=([\d.]+),URI="([^"]+)"(,INDEPENDENT=YES)?/g)];
    const durations = parts.map(([, duration]) => Number(duration));
    const whole = Number(/#EXTINF:([\d.]+)/.exec(block)![1]);
    assert(Math.abs(durations.reduce((sum, one) => sum + one, 0) - whole) < 0.001, block);
    assert(durations.every((one) => one <= 0.3501) && durations.slice(0, -1).every((one) => one >= 0.2975), block);
    assert(parts[0]![3] !== undefined, block);
    const segment = await bytesAt(/^http.*$/m.exec(block)![0]);
    const pieces = await Promise.all(parts.map(([, , address]) => bytesAt(address!)));
    assertEquals(segment.bytes.length, pieces.reduce((sum, { bytes }) => sum + bytes.length, 0));
    assertEquals(segment.bytes.subarray(4, 8), new TextEncoder().encode("moof"));
  }
});

test("a playlist is sent once it has the part or the segment that is asked for", async () => {
  const { n, p } = edge(await list());
  const withPart = edge(await list(`&_HLS_msn=${n}&_HLS_part=${p}`));
  assert(withPart.n > n || withPart.p > p, JSON.stringify({ n, p, withPart }));
  const withSegment = await list(`&_HLS_msn=${withPart.n}`);
  assert(edge(withSegment).n > withPart.n);
  assertMatch(withSegment, new RegExp(`/${withPart.n}\\.m4s`));
});

test("a part that is hinted comes as soon as it is made, and one further ahead is none", async () => {
  const text = await list();
  const [, hint] = /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(text)!;
  const { status, bytes } = await bytesAt(hint!);
  assertEquals([status, bytes.subarray(4, 8)], [200, new TextEncoder().encode("moof")]);
  assertEquals((await bytesAt(hint!.replace(/\d+\.\d+\.m4s/, `${edge(text).n + 5}.0.m4s`))).status, 404);
});

test("requests for the far future, or that make no sense, get 400", async () => {
  const statusOf = async (query: string) => (await bytesAt(`${url}&${query}`)).status;
  const { n } = edge(await list());
  for (const query of [`_HLS_msn=${n + 4}`, "_HLS_part=1", "_HLS_msn=x"]) {
    assertEquals([await statusOf(query), query], [400, query]);
  }
  // A part of a segment that is over by then stands for the next segment.
  let growing = edge(await list());
  let status = await statusOf(`_HLS_msn=${growing.n}&_HLS_part=${growing.p + 40}`);
  for (let now = edge(await list()); status === 200 && now.n > growing.n; now = edge(await list())) {
    growing = now;
    status = await statusOf(`_HLS_msn=${growing.n}&_HLS_part=${growing.p + 40}`);
  }
  assertEquals(status, 400);
});

test("an update leaves out segments that players have had", async () => {
  // The boundary lies twelve seconds before the edge.
  let text = await list();
  const first = numberIn(text, "MEDIA-SEQUENCE");
  while (edge(text).n < first + 10) text = await list(`&_HLS_msn=${edge(text).n}`);
  const update = await list("&_HLS_skip=YES");
  const skipped = Number(/#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)/.exec(update)?.[1]);
  assert(skipped > 0, update);
  assertEquals(numberIn(update, "VERSION"), 9);
  const whole = await list();
  const { n } = edge(update);
  assertEquals(skipped + count(update, /^http/), n - numberIn(whole, "MEDIA-SEQUENCE"));
});
