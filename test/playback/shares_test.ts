import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { type LimitedSession, SESSION_LIMITS, SessionLimits } from "../../src/playback/session-limits.ts";
import { OWN, type ShareHolder, Shares } from "../../src/bytes/shares.ts";
import { MillraceError } from "../../src/errors.ts";

const page = (name: string): ShareHolder => ({ kind: "page", name });
const other = (name: string): ShareHolder => ({ kind: "other", name });

test("Shares gives strangers their share, and keeps the reserve for this machine", () => {
  const shares = new Shares({ total: 10, reserved: 4, page: 2, other: 3 });
  const take = (holder: ShareHolder, amount = 1) => {
    const shortage = shares.shortage(holder, amount);
    if (shortage === null) shares.take(holder, amount);
    return shortage;
  };
  assertEquals([take(page("a"), 2), take(page("a"))], [null, "share"]);
  assertEquals([take(other("a"), 3), take(other("a"))], [null, "share"]);
  assertEquals([take(other("b")), take(other("b")), take(page("c"))], [null, "total", "total"]);
  assertEquals([take(OWN, 4), take(OWN)], [null, "total"]);
  shares.giveBack(page("a"), 2);
  assertEquals([take(other("b"), 2), shares.total], [null, 10]);
});

/** Sessions that only know how long they have been idle. */
class Lab {
  readonly limits = new SessionLimits();
  readonly stopped: string[] = [];

  start(name: string, holder: ShareHolder, idleMs = 0, hasBody = false): void {
    this.limits.makeRoom(holder, "inactivity");
    const session: LimitedSession = {
      idleMs,
      hasBody,
      stop: (reason) => {
        this.stopped.push(`${name} ${reason}`);
        this.limits.remove(session);
      },
    };
    this.limits.add(session, holder);
  }
}

const isBusy = (start: () => void) => assertThrows(start, MillraceError, "stop one");

test("SessionLimits allows a page of another site few sessions, whatever names it uses", () => {
  const lab = new Lab();
  for (let i = 0; i < SESSION_LIMITS.page; i++) lab.start(`page ${i}`, page("127.0.0.1"));
  isBusy(() => lab.start("one more", page("127.0.0.1")));
  lab.start("mine", OWN);
  lab.start("television", other("192.168.1.2"));
  assertEquals(lab.stopped, []);
});

test("SessionLimits ends the caller's session that was idle for longest to make room for its next one", () => {
  const lab = new Lab();
  const tv = other("192.168.1.2");
  lab.start("other's", other("192.168.1.3"), 600_000);
  for (let i = 0; i < SESSION_LIMITS.other; i++) lab.start(`tv ${i}`, tv, i === 3 ? 40_000 : i === 5 ? 50_000 : 100);
  lab.start("next", tv);
  lab.start("next", tv);
  isBusy(() => lab.start("next", tv));
  assertEquals(lab.stopped, ["tv 5 inactivity", "tv 3 inactivity"]);
});

test("SessionLimits ends sessions whose players pause an open connection after all that have none", () => {
  const lab = new Lab();
  const tv = other("192.168.1.2");
  for (let i = 0; i < SESSION_LIMITS.other - 1; i++) lab.start(`paused ${i}`, tv, 50_000 + i, true);
  lab.start("left", tv, 4000);
  lab.start("next", tv);
  lab.start("next", tv);
  assertEquals(lab.stopped, ["left inactivity", `paused ${SESSION_LIMITS.other - 2} inactivity`]);
});

test("SessionLimits always has room for this machine beside any number of strangers", () => {
  const lab = new Lab();
  const strangers = SESSION_LIMITS.total - SESSION_LIMITS.reserved;
  for (let i = 0; i < strangers; i++) lab.start(`s${i}`, other(`10.0.${i >> 4}.1`), i === 7 ? 20_000 : 0);
  isBusy(() => lab.start("another machine", other("10.1.0.1")));
  for (let i = 0; i < SESSION_LIMITS.reserved; i++) lab.start(`mine ${i}`, OWN);
  assertEquals(lab.stopped, []);
  lab.start("mine, one more", OWN);
  assertEquals(lab.stopped, ["s7 inactivity"]);
  isBusy(() => lab.start("mine, too many", OWN));
});
