/** Channels that come by HTTP, from upstreams that the test sends by hand. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { concatBytes, toHex } from "../../../src/bytes/hex.ts";
import { MillraceError } from "../../../src/errors.ts";
import { statOf } from "../../../src/playback/stat.ts";
import type { LiveSession } from "../../../src/playback/live/live-session.ts";
import { clip } from "../../support/fixtures.ts";
import { checkTs } from "../../support/ts-check.ts";
import { until } from "../../support/until.ts";
import { setUpChannels } from "./upstream.ts";

const A = "http://a.example/live";
const B = "http://b.example/live";
const facts = (session: LiveSession) => statOf(session, { limitBytes: 0, usedBytes: 0 }, "prefuf")["channel"];

/** A viewer that counts what it gets. */
function view(session: LiveSession) {
  const viewer = { bytes: 0, isOver: false, leave: () => reader.cancel() };
  const reader = session.openStream().getReader();
  void (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) viewer.bytes += next.value.length;
    viewer.isOver = true;
  })().catch(() => viewer.isOver = true);
  return viewer;
}

test("Sessions.start() plays an address for all viewers from one upstream, and closes it 10 s after the last one", async () => {
  const { clock, asked, open, begin, run, sessions } = setUpChannels({ [A]: "sends" });
  const one = await begin([A], { pid: "one" });
  const sha1 = new Uint8Array(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(A)));
  assertEquals(one.identity.infohashHex, toHex(sha1));
  const two = await begin([A], { pid: "two" });
  const viewers = [view(one), view(two)];
  await run(5000);
  assert(viewers.every(({ bytes }) => bytes > 60_000), JSON.stringify(viewers));
  assertEquals(asked, [A]);
  assertEquals(facts(one), {
    index: 0,
    count: 1,
    item: 1,
    address: A,
    playing: true,
    changes: 0,
    reason: null,
    title: null,
  });
  await viewers[0]!.leave();
  await run(11_000);
  assertEquals([open[0]!.isLeft, sessions.list().length], [false, 1], "one of them watches");
  await viewers[1]!.leave();
  await run(9000);
  assertEquals(open[0]!.isLeft, false);
  await run(3000);
  assertEquals([open[0]!.isLeft, sessions.list().length], [true, 0]);
  assertEquals(clock.pendingTimers, 0);
});

test("Sessions.start() gives another address of a channel 3 s after the first fell silent, and says why", async () => {
  const { asked, open, begin, run } = setUpChannels({ [A]: "sends", [B]: "sends" });
  const session = await begin([A, B]);
  const viewer = view(session);
  await run(3000);
  await run(3300, () => false);
  assertEquals(asked, [A, B]);
  assertEquals(open.map(({ isLeft }) => isLeft), [true, false]);
  const before = viewer.bytes;
  await run(3000);
  assert(viewer.bytes > before + 30_000, `${viewer.bytes - before} bytes`);
  const reason = "nothing came for 3 s";
  assertEquals(facts(session), {
    index: 1,
    count: 2,
    item: 2,
    address: B,
    playing: true,
    changes: 1,
    reason,
    title: null,
  });
  session.stop("done");
});

test("Sessions.start() passes over addresses that are missing, or send something else", async () => {
  const page = "http://c.example/page";
  const { asked, begin } = setUpChannels({ [A]: 404, [page]: "<html>".padEnd(5000, "x"), [B]: "sends" });
  const session = await begin([A, page, B]);
  assertEquals(asked, [A, page, B]);
  assertMatch(
    JSON.stringify(facts(session)),
    /"index":2.*"item":3.*"changes":2,"reason":".*neither MPEG TS, HLS nor radio/,
  );
  session.stop("done");
});

test("Sessions.start() opens at most 32 channels of which nothing has come yet", async () => {
  const urls = Array.from({ length: 33 }, (_, i) => `http://a.example/${i}`);
  const { clock, asked, sessions, request } = setUpChannels(Object.fromEntries(urls.map((url) => [url, "hangs"])));
  const leaving = new AbortController();
  const start = (url: string) => sessions.start(request([url], { pid: url, signal: leaving.signal }));
  const starts = urls.slice(0, 32).map((url) => start(url).catch(() => {}));
  await until("32 are being opened", async () => {
    await clock.advanceAsync(100);
    return asked.length === 32;
  });
  const late = assertRejects(() => start(urls[32]!), MillraceError, "many channels are being opened");
  await clock.advanceAsync(1000);
  await late;
  leaving.abort();
  await Promise.all(starts);
});

test("Sessions.start() closes the channels that were left longest ago, when more than eight were", async () => {
  const urls = Array.from({ length: 12 }, (_, i) => `http://a.example/${i}`);
  const { open, begin, run } = setUpChannels(Object.fromEntries(urls.map((url) => [url, "sends"])));
  const watched = view(await begin([urls[0]!], { pid: "stays" }));
  for (const url of urls.slice(1, 11)) {
    const session = await begin([url], { pid: url });
    const viewer = view(session);
    await run(100);
    await viewer.leave();
  }
  await run(2000);
  const last = await begin([urls[11]!], { pid: "last" });
  assertEquals(open.map(({ isLeft }) => isLeft), urls.map((_, i) => i === 1 || i === 2));
  await watched.leave();
  last.stop("done");
});

test("Sessions.start() rejects with the first address's fault when none plays", async () => {
  const { clock, begin, sessions } = setUpChannels({ [A]: 404, [B]: "hangs" });
  await assertRejects(() => begin([A]), MillraceError, "a.example answered 404");
  await assertRejects(() => begin([A, B]), MillraceError, "a.example answered 404");
  assert(clock.monotonic() <= 4000, "3 s for the other");
  assertEquals([sessions.list().length, clock.pendingTimers], [0, 0]);
});

test("Sessions.start() opens the only address of a channel again when its server closes it", async () => {
  const { asked, open, begin, run } = setUpChannels({ [A]: "sends" });
  const session = await begin([A]);
  const viewer = view(session);
  await run(2000);
  open[0]!.end();
  await run(1000);
  assertEquals(asked, [A, A]);
  const before = viewer.bytes;
  await run(3000);
  assert(viewer.bytes > before && !viewer.isOver);
  assertMatch(JSON.stringify(facts(session)), /"changes":1,"reason":"the server ended the stream"/);
  session.stop("done");
});

test("Sessions.start() leaves the only address of a channel when nothing came for 10 s, and not before", async () => {
  const { asked, begin, run } = setUpChannels({ [A]: "sends" });
  const session = await begin([A]);
  const viewer = view(session);
  await run(9500, () => false);
  assertEquals([asked.length, viewer.isOver], [1, false]);
  await run(1000, () => false);
  assertEquals(asked, [A, A]);
  assertMatch(JSON.stringify(facts(session)), /"reason":"nothing came for 10 s"/);
  session.stop("done");
});

test("Sessions.start() sends the first picture at once, in however many parts it comes", async () => {
  const { clock, open, sessions, request } = setUpChannels({ [A]: "sends" });
  const starting = sessions.start(request([A]));
  await until("the upstream is open", () => open.length === 1);
  // The first picture begins in the eleventh packet, and goes on after a hundred without content.
  const idle = new Uint8Array(188).fill(0xff);
  idle.set([0x47, 0x1f, 0xff, 0x10]);
  const media = clip("ts-188.ts");
  const bytes = concatBytes([
    media.subarray(0, 11 * 188),
    ...Array(100).fill(idle),
    media.subarray(11 * 188, 400 * 188),
  ]);
  for (let at = 0; at < bytes.length; at += 10 * 188) {
    open[0]!.say(bytes.slice(at, at + 10 * 188));
    await new Promise((resolve) => setTimeout(resolve));
  }
  const session = await starting as LiveSession;
  const viewer = view(session);
  await until("the pictures that have come are sent", () => viewer.bytes >= 300 * 188);
  assertEquals(clock.monotonic(), 0);
  await viewer.leave();
  session.stop("done");
});

test("LiveSession.seek() goes back inside the window of a channel and to its edge again, from the one upstream", async () => {
  const { clock, asked, begin, run } = setUpChannels({ [A]: "sends" });
  const begunMs = clock.now();
  const session = await begin([A]);
  const reader = session.openStream().getReader();
  let parts: Uint8Array[] = [];
  void (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) parts.push(next.value);
  })().catch(() => {});
  /** Time of the first picture that is sent from now on, s since the beginning. */
  const firstTime = async () => {
    parts = [];
    await run(1000);
    const [picture] = checkTs(concatBytes(parts), { isSegment: false }).streams[0]!.units;
    return (picture!.pts - firstPts) / 90_000;
  };
  let firstPts = 0;
  firstPts = await firstTime() * 90_000;
  await run(29_000);
  const nowS = () => (clock.now() - begunMs) / 1000;
  const isNear = (timeS: number, wantedS: number) => assert(timeS <= wantedS && timeS > wantedS - 3, `${timeS} s`);
  const wantedS = nowS() - 20;
  session.seek(begunMs + wantedS * 1000);
  isNear(await firstTime(), wantedS);
  const { livepos } = statOf(session, { limitBytes: 0, usedBytes: 0 }, "prefuf") as {
    livepos: Record<string, unknown>;
  };
  assertEquals(livepos["is_live"], "0", JSON.stringify(livepos));
  session.seek(null);
  const edgeS = nowS();
  isNear(await firstTime(), edgeS);
  // What has left the window is no fault: it plays from the oldest.
  await run(60_000);
  session.seek(begunMs);
  const oldestS = await firstTime();
  assert(oldestS > 5 && oldestS < nowS() - 30, `${oldestS} s`);
  assertThrows(() => session.seek(clock.now() + 5000), MillraceError, "future");
  assertEquals(asked, [A]);
  session.stop("done");
});

test("Sessions.start() ends a channel whose address is a recording, which plays at its own speed", async () => {
  const { asked, begin, run } = setUpChannels({ [A]: clip("ts-188.ts") });
  const session = await begin([A]);
  const viewer = view(session);
  await run(1000);
  assertEquals(viewer.isOver, false);
  await run(6000);
  assertEquals([viewer.isOver, session.stream.ended, asked.length], [true, true, 1]);
  assert(viewer.bytes > clip("ts-188.ts").length * 0.9, `${viewer.bytes} bytes`);
  session.stop("done");
});

test("Sessions.start() opens addresses of the private network only where the caller or the item's may name them", async () => {
  const lan = "http://camera.lan/live";
  const { asked, begin } = setUpChannels({ [lan]: "sends" });
  await assertRejects(() => begin([lan], { callerIsLocal: false }), MillraceError, "private network");
  assertEquals(asked, []);
  const session = await begin([{ address: lan, mayNamePrivate: true }], { callerIsLocal: false, pid: "user" });
  assertEquals(asked, [lan]);
  // It runs, and others still may not name it.
  await assertRejects(() => begin([lan], { callerIsLocal: false }), MillraceError, "private network");
  session.stop("done");
});

test("Sessions.start() follows an address of the Internet into the private network neither by redirects nor by lists", async () => {
  const lan = "http://camera.lan/0.ts";
  const list = (line: string) => `#EXTM3U\n#EXT-X-TARGETDURATION:6\n${line}\n`;
  const { asked, begin } = setUpChannels({
    [A]: { to: "http://camera.lan/live" },
    [B]: list(`#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://camera.lan/list.m3u8`),
    "http://c.example/live": list(`#EXTINF:6,\n${lan}\n#EXT-X-ENDLIST`),
    "http://d.example/live": list(
      `#EXT-X-KEY:METHOD=AES-128,URI="http://camera.lan/key"\n#EXTINF:6,\n0.ts\n#EXT-X-ENDLIST`,
    ),
    "http://d.example/0.ts": "sends",
    "http://e.example/live": list(
      `#EXT-X-MAP:URI="http://camera.lan/init.mp4"\n#EXTINF:6,\n0.m4s\n#EXT-X-ENDLIST`,
    ),
    "http://e.example/0.m4s": "sends",
    "http://f.example/live": list(
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="http://camera.lan/sound.m3u8"\n` +
        `#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nhttp://c.example/live`,
    ),
  });
  for (const host of ["a", "b", "c", "d", "e", "f"]) {
    const address = `http://${host}.example/live`;
    await assertRejects(() => begin([address], { callerIsLocal: true }), MillraceError);
  }
  assertEquals(asked.filter((url) => url.includes(".lan")), []);
});

test("Sessions.start() sends an address's own fields, and to other origins only the name of the player", async () => {
  const list = `${A}/list.m3u8`;
  const playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\nhttp://cdn.example/0.ts\n#EXTINF:6,\n1.ts\n";
  const { open, begin, run } = setUpChannels({
    [list]: playlist,
    "http://cdn.example/0.ts": "sends",
    [`${A}/1.ts`]: "sends",
  });
  const session = await begin([`${list}|User-Agent=Box%2F1&Referer=http://portal.example/`]);
  open[0]!.end();
  await run(500);
  const sent = open.map(({ request: { headers } }) => [headers.get("user-agent"), headers.get("referer")]);
  assertEquals(sent, [["Box/1", null], ["Box/1", "http://portal.example/"]]);
  assertEquals(session.stream.source.channel!.address, list);
  session.stop("done");
});
