import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { LeadStream } from "../../../src/bytes/ts/lead-stream.ts";

const NONE = new Uint8Array();
const map = (...streams: [type: number, pid: number][]) => ({
  descriptors: NONE,
  streams: streams.map(([streamType, pid]) => ({ streamType, pid, descriptors: NONE })),
});

/** Units of `pid`, `everyMs` apart, in `[fromMs, toMs)`. */
function units(pid: number, everyMs: number, fromMs: number, toMs: number): [ms: number, pid: number][] {
  return Array.from({ length: Math.ceil((toMs - fromMs) / everyMs) }, (_, i) => [fromMs + i * everyMs, pid]);
}

/** When which stream came to lead: its PID and ms. */
function leads(lead: LeadStream, all: [ms: number, pid: number][]): [ms: number, pid: number][] {
  const out: [number, number][] = [[0, lead.lead!.pid]];
  for (const [ms, pid] of all.toSorted(([a], [b]) => a - b)) {
    if (lead.unit(pid, ms * 90)) out.push([ms, lead.lead!.pid]);
  }
  return out;
}

test("LeadStream.lead is the first video, else the first sound, else the first stream", () => {
  assertEquals(new LeadStream(map([0x86, 1], [0x0f, 2], [0x1b, 3])).lead, { pid: 3, codec: "h264", isVideo: true });
  assertEquals(new LeadStream(map([0x06, 1], [0x0f, 2])).lead, { pid: 2, codec: "aac", isVideo: false });
  assertEquals(new LeadStream(map([0x06, 1])).lead, { pid: 1, codec: null, isVideo: false });
  assertEquals(new LeadStream(map()).lead, null);
});

test("LeadStream.unit() has sound lead 3 s after the last picture, and pictures again when they have flowed for 2 s", () => {
  const streams = map([0x1b, 1], [0x0f, 2]);
  const sound = units(2, 40, 0, 30_000);
  assertEquals(leads(new LeadStream(streams), [...units(1, 40, 0, 30_000), ...sound]), [[0, 1]]);
  assertEquals(leads(new LeadStream(streams), sound), [[0, 1], [3000, 2]]);
  const stopped = [...units(1, 40, 0, 10_000), ...units(1, 40, 20_000, 30_000), ...sound];
  assertEquals(leads(new LeadStream(streams), stopped), [[0, 1], [12_920, 2], [22_000, 1]]);
  assertEquals(leads(new LeadStream(streams), [...units(1, 5000, 0, 30_000), ...sound]), [[0, 1], [3000, 2]]);
});

test("LeadStream.unit() is not misled by a clock that was set, or by data", () => {
  const lead = new LeadStream(map([0x1b, 1], [0x0f, 2], [0x06, 3]));
  for (const ms of [0, 40, 60_000, 60_040, 5, 45]) {
    assertEquals([lead.unit(1, ms * 90), lead.unit(2, ms * 90)], [false, false]);
  }
  assertEquals(leads(new LeadStream(map([0x1b, 1], [0x06, 3])), units(3, 40, 0, 30_000)), [[0, 1]]);
  assertEquals(lead.unit(9, 0), false);
  assertEquals(lead.unit(2, null), false);
});
