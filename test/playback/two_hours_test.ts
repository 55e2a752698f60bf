import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { hasPayload, PACKET_BYTES, payloadOf, pidOf, readPesHeader, startsUnit } from "../../src/bytes/ts/packet.ts";
import { stepBetween } from "../../src/bytes/ts/stamps.ts";
import { inPackets } from "../../src/inputs/packets.ts";
import type { LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { usedBytes } from "../support/collected.ts";
import { settle } from "../support/fake-clock.ts";
import {
  bytesOf,
  clockSet,
  encoded,
  pictures,
  type SentPacket,
  SOUND_PID,
  tablesEvery,
  VIDEO_PID,
} from "../support/ts-shapes.ts";
import { setUp } from "./live-setup.ts";
import { unitsOf } from "./live-shapes.ts";

const SECONDS = 7200;
/** Data comes in steps of this, s. */
const STEP_S = 3;
/** The clip comes over and over. */
const PASS_S = 6;
/** A player loads the playlist this often, s, and here every fifth segment: all of them are in the MPEG TS. */
const LOAD_EVERY_S = 12;
const FETCHED = 5;
/** Every so often nothing comes for a pass. */
const BREAK_EVERY_S = 600;
const WINDOW_S = 60;
/** A clock of 33 bits begins again after this many seconds of the broadcast. */
const WRAP_AT_S = 3601;

/** What a thin stream has in each second: a key frame and one PES of sound, so that two hours of it are quick. */
function thinPass(): SentPacket[] {
  let sound = 0;
  let keeps = false;
  const keys = tablesEvery(1000)(pictures((_, isKey) => isKey)(encoded("ts-188.ts", 1000 * PASS_S)));
  return keys.filter(({ atMs, bytes }) => {
    if (pidOf(bytes, 0) !== SOUND_PID) return true;
    if (startsUnit(bytes, 0)) keeps = atMs >= 1000 * sound && ++sound > 0;
    return keeps;
  });
}

/** The source, step by step. */
class LongSource {
  readonly #pass = thinPass();
  readonly #counters = new Map<number, number>();
  #now: readonly SentPacket[] = [];
  /** Units so far, by PID. */
  readonly sent: Record<number, number> = {};

  /** What comes from second `s` on. */
  step(s: number): LiveInputEvent | null {
    const pass = Math.floor(s / PASS_S);
    const within = s % PASS_S;
    if (s % BREAK_EVERY_S >= BREAK_EVERY_S - PASS_S) {
      return within === PASS_S - STEP_S ? { kind: "lost", reason: "nothing came for 5 s" } : null;
    }
    if (within === 0) this.#now = clockSet(0, 2 ** 33 / 90 - 1000 * (WRAP_AT_S - pass * PASS_S))(this.#pass);
    const due = this.#now.filter(({ atMs }) => atMs >= 1000 * within && atMs < 1000 * (within + STEP_S));
    const bytes = bytesOf(due);
    for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
      const pid = pidOf(bytes, at);
      const counter = ((this.#counters.get(pid) ?? -1) + (hasPayload(bytes, at) ? 1 : 0)) & 15;
      this.#counters.set(pid, counter);
      bytes[at + 3] = (bytes[at + 3]! & 0xf0) | counter;
    }
    for (const [pid, count] of Object.entries(unitsOf(bytes))) this.sent[+pid] = (this.sent[+pid] ?? 0) + count;
    return { kind: "data", bytes };
  }
}

/** Units of a transport stream that comes in parts, and how their times go on. */
class Read {
  readonly units: Record<number, number> = {};
  readonly #last = new Map<number, number>();
  leastStep90k = Infinity;
  mostStep90k = 0;

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
      if (!startsUnit(bytes, at) || !hasPayload(bytes, at)) continue;
      const pts90k = readPesHeader(payloadOf(bytes, at))?.pts90k ?? null;
      if (pts90k === null) continue;
      const pid = pidOf(bytes, at);
      this.units[pid] = (this.units[pid] ?? 0) + 1;
      const last = this.#last.get(pid);
      this.#last.set(pid, pts90k);
      if (last === undefined) continue;
      const step = stepBetween(last, pts90k);
      this.leastStep90k = Math.min(this.leastStep90k, step);
      this.mostStep90k = Math.max(this.mostStep90k, step);
    }
  }
}

/** What follows one playlist from load to load. */
class Follower {
  readonly #kept = new Map<number, string>();
  #newest: number | null = null;
  #first = 0;
  #target = "";
  /** Length of all segments, s, and discontinuities among them. */
  lengthS = 0;
  discontinuities = 0;
  longestList = 0;
  firstMs = 0;
  lastMs = 0;

  /** Takes the playlist; returns the numbers of the segments that are new. */
  take(text: string): number[] {
    const target = /TARGETDURATION:(\d+)/.exec(text)![1]!;
    this.#target ||= target;
    assertEquals(target, this.#target, "the target duration must not change");
    const first = Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)![1]);
    assert(first >= this.#first, `media sequence ${first} after ${this.#first}`);
    this.#first = first;
    const entries = [
      ...text.matchAll(/(#EXT-X-DISCONTINUITY\n)?#EXT-X-PROGRAM-DATE-TIME:(.*)\n#EXTINF:(.*),\n(\d+)\n/g),
    ];
    this.longestList = Math.max(this.longestList, entries.length);
    const fresh: number[] = [];
    let listed = 0;
    for (const [i, [entry, discontinuity, date, length, number]] of entries.entries()) {
      const n = Number(number);
      assertEquals(n, first + i);
      if (discontinuity !== undefined) listed++;
      const known = this.#kept.get(n);
      if (known !== undefined) {
        assertEquals(entry, known, "a segment must not change");
        continue;
      }
      assertEquals(n, (this.#newest ?? n - 1) + 1, "no number is left out");
      this.#newest = n;
      this.#kept.set(n, entry);
      fresh.push(n);
      const startMs = Date.parse(date!);
      assert(startMs >= this.lastMs, `${date} comes after ${new Date(this.lastMs).toISOString()}`);
      this.firstMs ||= startMs;
      this.lastMs = startMs;
      this.lengthS += Number(length);
      if (discontinuity !== undefined) this.discontinuities++;
    }
    for (const n of this.#kept.keys()) if (n < first) this.#kept.delete(n);
    const before = Number(/DISCONTINUITY-SEQUENCE:(\d+)/.exec(text)?.[1] ?? 0);
    assertEquals(before + listed, this.discontinuities, "discontinuities that left the playlist are counted");
    return fresh;
  }
}

test("a broadcast of two hours with breaks and a wrap of its clock goes through broadcaster and viewer without growing", async () => {
  const { clock, studio, start } = await setUp({ windowMs: 1000 * WINDOW_S });
  const source = new LongSource();
  const queue: LiveInputEvent[] = [];
  let [wake, rest] = [() => {}, () => {}];
  const events = inPackets((async function* () {
    for (;;) {
      while (queue.length > 0) yield queue.shift()!;
      rest();
      await new Promise<void>((resolve) => wake = resolve);
    }
  })());
  const published = (async () => {
    for await (const event of events) {
      if (event.kind === "data") await studio.publisher.push(event.bytes);
      else await studio.publisher.sourceLost();
    }
  })();
  published.catch(() => {});
  const step = async (s: number) => {
    clock.advance(1000 * STEP_S);
    const event = source.step(s);
    if (event !== null) {
      queue.push(event);
      // Signing takes real time, in which virtual time stands still.
      const taken = new Promise<void>((resolve) => rest = resolve);
      wake();
      await taken;
    }
    studio.node.tick();
    await settle();
  };
  for (let s = 0; s < PASS_S; s += STEP_S) await step(s);
  const hls = await start({ output: "hls" });
  const watching = await start({ pid: "ts" });
  const { stream } = hls;
  const [ts, segments, follower] = [new Read(), new Read(), new Follower()];
  const reader = watching.openStream().getReader();
  const reading = (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) ts.push(next.value);
  })();
  reading.catch(() => {});
  const used: number[] = [];
  for (let s = PASS_S; s < SECONDS; s += STEP_S) {
    await step(s);
    if (s % LOAD_EVERY_S === 0) {
      for (const n of follower.take((await hls.playlist(String, AbortSignal.timeout(10_000)))!)) {
        if (n % FETCHED > 0) continue;
        const body = hls.openSegment(hls.segment(n)!);
        segments.push(new Uint8Array(await new Response(body).arrayBuffer()));
      }
    }
    if (s % 600 === 0) {
      assertLess(stream.window.usedBytes, 2 ** 20);
      assertLess(studio.node.window.solid - studio.node.window.base, 2 * WINDOW_S);
    }
    if (s === 1800 || s === SECONDS - STEP_S) used.push(await usedBytes());
  }
  reader.cancel().catch(() => {});
  // From the first half hour to the fourth: less than 340 bytes for each piece. Node grew by 0.77 to 0.82 MB in eight runs of
  // two builds.
  assertLess(used[1]! - used[0]!, 900_000);
  assertEquals(follower.discontinuities, SECONDS / BREAK_EVERY_S - 1);
  assertLess(follower.longestList, WINDOW_S + 2);
  const breaksS = follower.discontinuities * PASS_S;
  assertLess(Math.abs((follower.lastMs - follower.firstMs) / 1000 - SECONDS), 3 * PASS_S);
  assert(follower.lengthS > SECONDS - breaksS - 40 && follower.lengthS < SECONDS, `${follower.lengthS} s of segments`);
  for (const pid of [VIDEO_PID, SOUND_PID]) {
    const [sent, got, fetched] = [source.sent[pid]!, ts.units[pid]!, segments.units[pid]!];
    assert(got > sent - 40 && got <= sent, `${got} of ${sent}`);
    assert(fetched > sent / FETCHED - 40 && fetched <= sent / FETCHED + 40, `${fetched} of ${sent}`);
  }
  assert(ts.leastStep90k > 0 && ts.mostStep90k < (PASS_S + 3) * 90_000, `${ts.leastStep90k} to ${ts.mostStep90k}`);
  hls.stop("test");
  watching.stop("test");
});
