import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { BODY_LIMITS, CALL_LIMITS, LARGE_BODY_LIMITS, RequestAdmission } from "../../src/http/admission.ts";
import { OWN, type ShareHolder } from "../../src/bytes/shares.ts";
import { MillraceError } from "../../src/errors.ts";

const PAGE: ShareHolder = { kind: "page", name: "127.0.0.1" };
const OTHER: ShareHolder = { kind: "other", name: "192.168.1.7" };
const busy = (what: () => unknown) => assertEquals(assertThrows(what, MillraceError).code, "too_busy");

test("Admission.enter() admits so many calls of a page, and more when one has left", () => {
  const admission = new RequestAdmission();
  const leaves = Array.from({ length: CALL_LIMITS.page }, () => admission.enter(PAGE));
  busy(() => admission.enter(PAGE));
  admission.enter(OWN);
  leaves[0]!();
  leaves[0]!();
  admission.enter(PAGE);
  busy(() => admission.enter(PAGE));
});

test("Admission.enter() keeps places for this machine when other machines have called as often as they may", () => {
  const admission = new RequestAdmission();
  let admitted = 0;
  for (let host = 0; host < 100; host++) {
    for (let i = 0; i < 20; i++) {
      try {
        admission.enter({ kind: "other", name: String(host) });
        admitted++;
      } catch {
        // Counted below.
      }
    }
  }
  assertEquals(admitted, CALL_LIMITS.total - CALL_LIMITS.reserved);
  for (let i = 0; i < CALL_LIMITS.reserved; i++) admission.enter(OWN);
  busy(() => admission.enter(OWN));
});

test("Admission.body() counts the bytes of all bodies together until they are released", () => {
  const admission = new RequestAdmission();
  const holds = Array.from({ length: 20 }, (_, n) => admission.body({ kind: "other", name: String(n) }));
  let held = 0;
  for (const hold of holds) {
    try {
      for (let i = 0; i < 64; i++) {
        hold.add(1024 * 1024);
        held += 1024 * 1024;
      }
    } catch {
      // Its share or everybody's is used up.
    }
  }
  assertEquals([held, admission.bodyBytes], [BODY_LIMITS.total - BODY_LIMITS.reserved, held]);
  const own = admission.body(OWN);
  own.add(BODY_LIMITS.reserved);
  busy(() => own.add(1));
  for (const hold of [...holds, ...holds, own]) hold.release();
  assertEquals(admission.bodyBytes, 0);
});

test("Admission.body() lets few large bodies come at once, and any number of small ones", () => {
  const admission = new RequestAdmission();
  const holds = Array.from({ length: 200 }, () => admission.body(OWN));
  for (const hold of holds) hold.add(60_000);
  const large = holds.slice(0, LARGE_BODY_LIMITS.total);
  for (const hold of large) for (let i = 0; i < 3; i++) hold.add(20_000);
  busy(() => holds.at(-1)!.add(20_000));
  large[0]!.release();
  holds.at(-1)!.add(20_000);
});

test("Admission.body() keeps room for a body that says how long it is, and refuses the next before it is read", () => {
  const admission = new RequestAdmission();
  const first = admission.body(OTHER);
  first.announce(BODY_LIMITS.other - 1);
  assertEquals(admission.bodyBytes, BODY_LIMITS.other - 1);
  first.add(1000);
  assertEquals(admission.bodyBytes, BODY_LIMITS.other - 1, "what arrives was counted");
  const second = admission.body(OTHER);
  busy(() => second.announce(2));
  second.release();
  first.release();
  assertEquals(admission.bodyBytes, 0);
});
