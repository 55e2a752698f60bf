import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { AckPace } from "../../src/utp/ack-pace.ts";

/** Acknowledgements of `count` packets, one each `everyMs`, from `fromMs` on. */
function acknowledged(pace: AckPace, count: number, everyMs: number, fromMs = 0): number {
  let acknowledgements = 0;
  for (let n = 0; n < count; n++) {
    if (!pace.arrived(fromMs + n * everyMs)) continue;
    acknowledgements++;
    pace.sent();
  }
  return acknowledgements;
}

test("AckPace acknowledges every second packet of a thin flow, and every eighth of a dense one", () => {
  assertEquals(acknowledged(new AckPace(), 6_400, 1.1), 3_200);
  const pace = new AckPace();
  assertEquals(acknowledged(pace, 64, 0.5), 31);
  assertEquals(acknowledged(pace, 6_400, 0.5, 32), 800);
  // It thins: the next 64 packets decide.
  const thinned = acknowledged(pace, 640, 2, 3_232);
  assertEquals([thinned > 280, thinned < 320], [true, true]);
});

test("AckPace acknowledges every second packet again after a gap, until the flow has shown itself dense", () => {
  const pace = new AckPace();
  acknowledged(pace, 128, 0.1);
  pace.disturbed();
  pace.sent();
  assertEquals(acknowledged(pace, 64, 0.1, 20), 31);
  assertEquals(acknowledged(pace, 640, 0.1, 27), 80);
});

test("AckPace counts from the last packet of ours: each carries an acknowledgement", () => {
  const pace = new AckPace();
  assertEquals([pace.arrived(0), pace.arrived(1)], [false, true]);
  pace.sent();
  assertEquals(pace.arrived(2), false);
  pace.sent();
  assertEquals(pace.arrived(3), false);
});
