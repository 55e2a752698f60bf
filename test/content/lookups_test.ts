import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { Lookups } from "../../src/content/lookups.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";

const impatient = () => new MillraceError("timeout", "out of patience");

/** Lookups whose searches end when the test says so. */
function setUp() {
  const clock = new FakeClock();
  const closing = new AbortController();
  const late = () => new MillraceError("timeout", "too late");
  const lookups = new Lookups<string>({ clock, timeoutMs: 60_000, late, closing: closing.signal });
  const searches: { readonly signal: AbortSignal; readonly find: (found: string) => void }[] = [];
  const look = (signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      searches.push({ signal, find: resolve });
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const get = (key: string, signal: AbortSignal = new AbortController().signal) => lookups.get(key, look, signal);
  return { clock, closing, searches, get };
}

test("Lookups.get() goes on after a caller's patience, and gives the result to the next caller", async () => {
  const { searches, get } = setUp();
  const patience = new AbortController();
  const first = get("a", patience.signal);
  patience.abort(impatient());
  await assertRejects(() => first, MillraceError, "out of patience");
  assertEquals(searches[0]!.signal.aborted, false);
  const second = get("a");
  searches[0]!.find("found");
  assertEquals([await second, searches.length], ["found", 1]);
  void get("a");
  assertEquals(searches.length, 2, "what was found is not kept here");
});

test("Lookups.get() ends a lookup when its last caller leaves, its time is over, or the engine ends", async () => {
  const { clock, closing, searches, get } = setUp();
  const [one, other] = [new AbortController(), new AbortController()];
  const both = [get("a", one.signal), get("a", other.signal)];
  one.abort();
  await assertRejects(() => both[0]!);
  assertEquals([searches.length, searches[0]!.signal.aborted], [1, false]);
  other.abort();
  await assertRejects(() => both[1]!);
  assertEquals(searches[0]!.signal.aborted, true);
  const tooLate = assertRejects(() => get("a"), MillraceError, "too late");
  assertEquals(searches.length, 2, "an ended lookup is joined by nobody");
  clock.advance(60_000);
  await tooLate;
  const closed = assertRejects(() => get("b"), MillraceError, "closing");
  closing.abort(new MillraceError("closed", "closing"));
  await closed;
});

test("Lookups.get() leaves at most 16 lookups running that nobody waits for", async () => {
  const { searches, get } = setUp();
  for (let i = 0; i < 20; i++) {
    const patience = new AbortController();
    const left = assertRejects(() => get(`key ${i}`, patience.signal));
    patience.abort(impatient());
    await left;
  }
  assertEquals(searches.map(({ signal }) => signal.aborted), Array.from({ length: 20 }, (_, i) => i < 4));
});
