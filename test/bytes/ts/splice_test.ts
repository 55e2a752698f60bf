import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { TsSplicer } from "../../../src/bytes/ts/splice.ts";

const [PAT, MAP, VIDEO, AUDIO, CLOCK, TEXT] = [0, 0x1000, 0x100, 0x101, 0x102, 0x11];

interface PacketOptions {
  readonly counter?: number;
  readonly starts?: boolean;
  /** Bytes of the adaptation field with its length; flags in the second. */
  readonly field?: readonly number[];
  readonly payload?: boolean;
}

function packet(pid: number, options: PacketOptions = {}): Uint8Array {
  const { counter = 0, starts = false, field = [], payload = true } = options;
  const bytes = new Uint8Array(188).fill(0xaa);
  const control = (field.length > 0 ? 2 : 0) | (payload ? 1 : 0);
  bytes.set([0x47, (starts ? 0x40 : 0) | (pid >> 8), pid & 0xff, (control << 4) | counter, ...field]);
  return bytes;
}

const join = (...packets: Uint8Array[]) => new Uint8Array(packets.flatMap((one) => [...one]));
/** PID, counter, and M for a discontinuity_indicator, of each packet. */
function shown(ts: Uint8Array): string[] {
  return Array.from({ length: ts.length / 188 }, (_, i) => {
    const at = i * 188;
    const pid = ((ts[at + 1]! & 31) << 8) | ts[at + 2]!;
    const marked = (ts[at + 3]! & 0x20) !== 0 && ts[at + 4]! > 0 && (ts[at + 5]! & 0x80) !== 0;
    return `${pid.toString(16)}:${ts[at + 3]! & 15}${marked ? "M" : ""}`;
  });
}
const POINT = {
  tables: [packet(PAT, { starts: true, counter: 9 }), packet(MAP, { starts: true, counter: 4 })],
  pcrPid: VIDEO,
  streamPids: [VIDEO, AUDIO],
};
/** An adaptation field with a PCR. */
const PCR = [7, 0x10, 0, 0, 0, 0, 0, 0];

test("TsSplicer.enter() emits PAT and PMT, and streams begin with a whole unit and counter 0", () => {
  const splicer = new TsSplicer();
  assertEquals(shown(splicer.enter(POINT)), ["0:0", "1000:0"]);
  const out = splicer.push(join(
    packet(AUDIO, { counter: 3 }),
    packet(VIDEO, { counter: 7, starts: true, field: PCR }),
    packet(AUDIO, { counter: 4, starts: true }),
    packet(TEXT, { counter: 1 }),
    packet(VIDEO, { counter: 8 }),
    packet(0x1fff),
  ));
  assertEquals(shown(out), ["100:0", "101:0", "100:1"]);
});

test("TsSplicer.push() keeps what the source lost or repeated visible, and counts tables again", () => {
  const splicer = new TsSplicer();
  splicer.enter(POINT);
  const out = splicer.push(join(
    packet(VIDEO, { counter: 14, starts: true }),
    packet(VIDEO, { counter: 15 }),
    packet(VIDEO, { counter: 15 }),
    packet(VIDEO, { counter: 2 }),
    packet(PAT, { counter: 9, starts: true }),
    packet(PAT, { counter: 9, starts: true }),
    packet(VIDEO, { counter: 2, field: PCR, payload: false }),
  ));
  assertEquals(shown(out), ["100:0", "100:1", "100:1", "100:4", "0:1", "0:2", "100:4"]);
});

test("a second TsSplicer.enter() continues the counters and marks each stream once (2.4.3.5)", () => {
  const splicer = new TsSplicer();
  splicer.enter(POINT);
  splicer.push(
    join(packet(VIDEO, { starts: true, field: PCR }), packet(AUDIO, { starts: true }), packet(VIDEO, { counter: 1 })),
  );
  assertEquals(shown(splicer.enter(POINT)), ["0:1", "1000:1"]);
  const out = splicer.push(join(
    packet(AUDIO, { counter: 12 }),
    packet(VIDEO, { counter: 5, starts: true, field: PCR }),
    packet(AUDIO, { counter: 13, starts: true }),
    packet(VIDEO, { counter: 6, field: PCR }),
    packet(AUDIO, { counter: 14 }),
  ));
  // The clock's own packet carries the mark; sound gets one without payload, which does not count.
  assertEquals(shown(out), ["100:2M", "101:0M", "101:1", "100:3", "101:2"]);
  const mark = out.subarray(188, 376);
  assertEquals([mark[3]! >> 4, mark[4], mark[5]], [2, 183, 0x80]);
  assert(mark.subarray(6).every((byte) => byte === 0xff));
});

test("TsSplicer marks a clock that comes late, and one on a separate PID", () => {
  const late = new TsSplicer();
  late.enter(POINT);
  late.push(packet(VIDEO, { starts: true, field: PCR }));
  late.enter(POINT);
  const plain = [1, 0];
  const out = late.push(join(
    packet(VIDEO, { counter: 1, starts: true }),
    packet(VIDEO, { counter: 2, field: plain }),
    packet(VIDEO, { counter: 3, field: PCR }),
    packet(VIDEO, { counter: 4, field: PCR }),
  ));
  assertEquals(shown(out), ["100:0M", "100:1", "100:2M", "100:3M", "100:4"]);

  const apart = new TsSplicer();
  const point = { ...POINT, pcrPid: CLOCK };
  const clock = packet(CLOCK, { field: [183, ...PCR.slice(1)], payload: false });
  apart.enter(point);
  assertEquals(shown(apart.push(join(clock, packet(VIDEO, { starts: true })))), ["102:15", "100:0"]);
  apart.enter(point);
  assertEquals(shown(apart.push(join(clock, clock))), ["102:15M", "102:15"]);
});

test("TsSplicer.changeSource() makes players look at the tables again: their counters jump with a mark, once", () => {
  const splicer = new TsSplicer();
  splicer.changeSource();
  assertEquals(shown(splicer.enter(POINT)), ["0:0", "1000:0"], "nothing was before");
  splicer.push(join(packet(VIDEO, { starts: true, field: PCR }), packet(AUDIO, { starts: true })));
  splicer.changeSource();
  assertEquals(shown(splicer.enter(POINT)), ["0:8M", "0:9", "1000:8M", "1000:9"]);
  assertEquals(shown(splicer.push(packet(VIDEO, { counter: 5, starts: true, field: PCR }))), ["100:1M"]);
  assertEquals(shown(splicer.enter(POINT)), ["0:10", "1000:10"], "the same source goes on");
});
