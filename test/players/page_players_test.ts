import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { PagePlayers, type PageReport } from "../../src/players/pages/page-players.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { FakeStream } from "./support.ts";

const { signal } = new AbortController();
const report = (turn: number, state: PageReport["state"], more: Partial<PageReport> = {}): PageReport => {
  return { turn, state, positionSeconds: null, durationSeconds: null, reason: "", ...more };
};

/** A listening page, and the messages it gets. */
async function listening(pages: PagePlayers, host = "192.168.7.9", isLocal = false) {
  const reader = pages.join(host, isLocal).lines.getReader();
  const next = async () => {
    const { done, value } = await reader.read();
    return done ? null : JSON.parse(new TextDecoder().decode(value));
  };
  const { seat } = await next();
  const device = (await pages.list()).at(-1)!;
  return { reader, next, seat: seat as string, device };
}

test("PagePlayers lists pages while they listen, numbered by machine", async () => {
  const pages = new PagePlayers({ clock: new FakeClock(), log: silent });
  const one = await listening(pages, "127.0.0.1", true);
  const two = await listening(pages);
  const three = await listening(pages);
  const names = async () => (await pages.list()).map(({ facts }) => facts.name);
  assertEquals(await names(), ["Web page on this machine", "Web page on 192.168.7.9", "Web page on 192.168.7.9 (2)"]);
  assertEquals([one.device.facts.type, one.device.facts.protocol, one.device.localOnly], ["proxy", null, false]);
  assertEquals(new Set([one, two, three].map(({ device }) => device.facts.id)).size, 3);
  assert(!JSON.stringify((await pages.list()).map(({ facts }) => facts)).includes(two.seat), "its secret stays one");
  await two.reader.cancel();
  await listening(pages);
  assertEquals(await names(), ["Web page on this machine", "Web page on 192.168.7.9 (2)", "Web page on 192.168.7.9"]);
  await pages.close();
  assertEquals([await pages.list(), await three.next()], [[], null]);
});

test("a page gets the path of a stream, and what it reports decides what open() says", async () => {
  const pages = new PagePlayers({ clock: new FakeClock(), log: silent });
  const { next, seat, device } = await listening(pages);
  assertEquals((await device.status(signal)).state, "idle");
  assertEquals((await assertRejects(() => device.control({ kind: "pause" }, signal), MillraceError)).code, "conflict");

  const playing = device.open(new FakeStream("1"), signal);
  const { open } = await next();
  assertEquals(open, { turn: 1, path: "/engine/f/x/1/film.mkv", title: "A film", is_live: false });
  pages.report(seat, report(0, "failed", { reason: "of a stream before" }));
  pages.report(seat, report(1, "playing", { positionSeconds: 1.5, durationSeconds: 6 }));
  await playing;
  assertEquals(await device.status(signal), { state: "playing", positionSeconds: 1.5, durationSeconds: 6 });
  await device.control({ kind: "seek", positionSeconds: 4 }, signal);
  assertEquals(await next(), { command: { turn: 1, kind: "seek", positionSeconds: 4 } });
  pages.report(seat, report(1, "paused", { positionSeconds: 4 }));
  assertEquals((await device.status(signal)).state, "paused");
  await device.control({ kind: "stop" }, signal);
  assertEquals([(await next()).command.kind, (await device.status(signal)).state], ["stop", "idle"]);

  const failing = assertRejects(() => device.open(new FakeStream("2"), signal), MillraceError, "no codec");
  assertEquals((await next()).open.turn, 2);
  pages.report(seat, report(1, "playing"));
  pages.report(seat, report(2, "failed", { reason: "no codec" }));
  assertEquals((await failing).code, "unavailable");
  assertEquals(assertThrows(() => pages.report("another", report(2, "playing")), MillraceError).code, "not_found");
});

test("a page that leaves while a stream is opened in it ends that", async () => {
  const clock = new FakeClock();
  const pages = new PagePlayers({ clock, log: silent });
  const { reader, device } = await listening(pages);
  const opening = assertRejects(() => device.open(new FakeStream("1"), signal), MillraceError, "the page was closed");
  await reader.cancel();
  assertEquals((await opening).code, "closed");
  assertEquals([await pages.list(), clock.pendingTimers], [[], 0]);
  await assertRejects(() => device.open(new FakeStream("2"), signal), MillraceError, "the page was closed");
});

test("a page gets a message every 15 s, and one that stops reading is dropped", async () => {
  const clock = new FakeClock();
  const pages = new PagePlayers({ clock, log: silent });
  const { next } = await listening(pages);
  await clock.advanceAsync(15_000);
  assertEquals(await next(), { ping: 1 });
  await clock.advanceAsync(15_000 * 8);
  assertEquals((await pages.list()).length, 1);
  await clock.advanceAsync(15_000 * 2);
  assertEquals([await pages.list(), clock.pendingTimers], [[], 0]);
});

test("PagePlayers.join() takes 8 pages of one machine and 32 together", async () => {
  const pages = new PagePlayers({ clock: new FakeClock(), log: silent });
  for (let host = 1; host <= 4; host++) {
    for (let n = 0; n < 8; n++) pages.join(`192.168.7.${host}`, false);
    const refused = assertThrows(() => pages.join(`192.168.7.${host}`, false), MillraceError);
    assertEquals(refused.code, "too_busy");
  }
  assertEquals((await pages.list()).length, 32);
  assertThrows(() => pages.join("192.168.7.5", false), MillraceError);
  await pages.close();
});
