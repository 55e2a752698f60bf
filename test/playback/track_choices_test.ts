/** What was chosen to hear and read. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { MAX_CHOICES, TrackChoices } from "../../src/playback/track-choices.ts";
import { FakeClock } from "../support/fake-clock.ts";

const A = { infohashHex: "a".repeat(40), fileIndex: 0 };
const NONE = { sound: null, subtitles: null };

async function withChoices(body: (choices: TrackChoices, clock: FakeClock, store: Store) => Promise<void>) {
  const clock = new FakeClock();
  const store = createStore({ ...await loadPorts({ log: { level: "error" } }), clock }, { kind: "memory" });
  try {
    await body(new TrackChoices(store, clock), clock, store);
  } finally {
    await store.close();
  }
}

test("TrackChoices.get() returns what was chosen in a file, and the languages that were chosen last", () =>
  withChoices(async (choices) => {
    assertEquals(await choices.get(A), { own: NONE, last: NONE });
    await choices.set(A, { sound: "de", subtitles: null }, { sound: "de", subtitles: null });
    await choices.set(A, { sound: null, subtitles: "Signs (ASS)" }, { sound: null, subtitles: "en" });
    const last = { sound: "de", subtitles: "en" };
    assertEquals(await choices.get(A), { own: { sound: "de", subtitles: "Signs (ASS)" }, last });
    assertEquals(await choices.get({ ...A, fileIndex: 1 }), { own: NONE, last });
    await choices.set({ ...A, fileIndex: 1 }, { sound: null, subtitles: "" }, { sound: null, subtitles: "" });
    assertEquals((await choices.get(A)).own.subtitles, "Signs (ASS)");
    assertEquals((await choices.get(A)).last, { sound: "de", subtitles: "" });
  }));

test("TrackChoices.set() keeps the newest files, and the preference, when more were chosen in than are remembered", () =>
  withChoices(async (choices, clock, store) => {
    const db = await store.open();
    const rows = Array.from({ length: MAX_CHOICES }, (_, n) => ({
      infohash: n.toString(16).padStart(40, "0"),
      file_index: 0,
      sound: "fr",
      subtitles: null,
      updated_at: n,
    }));
    for (let at = 0; at < rows.length; at += 500) {
      await db.insertInto("track_choices").values(rows.slice(at, at + 500)).execute();
    }
    clock.advance(1000);
    await choices.set(A, { sound: "de", subtitles: null }, { sound: "de", subtitles: null });
    const soundOf = async (infohashHex: string) => (await choices.get({ infohashHex, fileIndex: 0 })).own.sound;
    assertEquals(await soundOf(A.infohashHex), "de");
    assertEquals(await soundOf(rows[0]!.infohash), null);
    assertEquals(await soundOf(rows[1]!.infohash), "fr");
    assertEquals((await choices.get(A)).last.sound, "de");
  }));
