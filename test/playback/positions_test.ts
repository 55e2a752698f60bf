/** Where files were left off. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { MAX_POSITIONS, Positions } from "../../src/playback/positions.ts";
import { FakeClock } from "../support/fake-clock.ts";

const A = { infohashHex: "a".repeat(40), fileIndex: 0 };

async function withPositions(body: (positions: Positions, clock: FakeClock, store: Store) => Promise<void>) {
  const clock = new FakeClock();
  const store = createStore({ ...await loadPorts({ log: { level: "error" } }), clock }, { kind: "memory" });
  try {
    await body(new Positions(store, clock), clock, store);
  } finally {
    await store.close();
  }
}

test("Positions.get() returns the last position set for a file of a torrent, and null for others", () =>
  withPositions(async (positions, clock) => {
    assertEquals(await positions.get(A), null);
    await positions.set(A, 100.4, 3600);
    clock.advance(60_000);
    await positions.set(A, 200, 3600);
    assertEquals(await positions.get(A), {
      positionS: 200,
      durationS: 3600,
      updatedAt: Math.floor(clock.now() / 1000),
    });
    assertEquals(await positions.get({ ...A, fileIndex: 1 }), null);
    assertEquals(await positions.get({ ...A, infohashHex: "b".repeat(40) }), null);
  }));

test("Positions.set() forgets a file when it was seen to its end", () =>
  withPositions(async (positions) => {
    await positions.set(A, 100, 3600);
    await positions.set(A, 0, 3600);
    assertEquals(await positions.get(A), null);
  }));

test("Positions.set() keeps the newest when more files were watched than are remembered", () =>
  withPositions(async (positions, clock, store) => {
    const db = await store.open();
    const rows = Array.from({ length: MAX_POSITIONS }, (_, n) => ({
      infohash: n.toString(16).padStart(40, "0"),
      file_index: 0,
      position_s: 1,
      duration_s: 2,
      updated_at: n,
    }));
    for (let at = 0; at < rows.length; at += 500) {
      await db.insertInto("positions").values(rows.slice(at, at + 500)).execute();
    }
    await positions.set(A, 5, 10);
    assertEquals((await positions.get(A))?.positionS, 5);
    assertEquals(await positions.get({ infohashHex: rows[0]!.infohash, fileIndex: 0 }), null);
    assertEquals((await positions.get({ infohashHex: rows[1]!.infohash, fileIndex: 0 }))?.positionS, 1);
    clock.advance(1000);
    await positions.set({ ...A, fileIndex: 7 }, 5, 10);
    const { count } = await db.selectFrom("positions").select((eb) => eb.fn.countAll().as("count"))
      .executeTakeFirstOrThrow();
    assertEquals(Number(count), MAX_POSITIONS);
  }));
