import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { seededRandom } from "./event-queue.ts";
import { EventWheel } from "./event-wheel.ts";
import { PacketLoss, type PacketSender, TcpStream } from "./tcp-stream.ts";

const BLOCK = 16_384;
const ONE_WAY_MS = 35;

/** A line without a limit, on which the packets of these numbers are lost. */
function lineLosing(...numbers: number[]): PacketSender {
  let count = 0;
  return { packet: () => numbers.includes(count++) ? null : 0 };
}

/** Writes blocks of which eight are always under way; returns the bytes per second that arrive in 200 s. */
function carried(loss: PacketLoss): number {
  const queue = new EventWheel();
  const line = { packet: () => loss.next() ? null : 0 };
  const stream = new TcpStream(queue, line, line, ONE_WAY_MS);
  let bytes = 0;
  const write = () =>
    stream.write(BLOCK, () => {
      bytes += BLOCK;
      write();
    });
  for (let i = 0; i < 8; i++) write();
  queue.run(200_000);
  return bytes / 200;
}

/** When each of three blocks that are written at once arrives, ms. */
function arrivals(line: PacketSender): number[] {
  const queue = new EventWheel();
  const stream = new TcpStream(queue, line, lineLosing(), ONE_WAY_MS);
  const out: number[] = [];
  for (let i = 0; i < 3; i++) stream.write(1000, () => out.push(queue.nowMs));
  queue.run(5000);
  return out;
}

test("TcpStream.write() carries what Linux carries with a round trip of 70 ms: 221 KB/s with 1 % of packets lost", () => {
  const bytesPerS = carried(new PacketLoss({ share: 0.01 }, seededRandom(1)));
  assert(bytesPerS > 180_000 && bytesPerS < 270_000, `${bytesPerS}`);
  const heavy = carried(new PacketLoss({ share: 0.04 }, seededRandom(1)));
  assert(heavy > 70_000 && heavy < 0.6 * bytesPerS, `${heavy}`);
});

test("TcpStream.write() delivers in order: what follows a lost packet waits until that has been sent again", () => {
  assertEquals(arrivals(lineLosing()), [35, 35, 35]);
  // The two behind it show the loss after a round trip and a quarter.
  const [first, ...others] = arrivals(lineLosing(0));
  assert(first! > 105 && first! < 140, `${first}`);
  assertEquals(others, [first, first]);
});

test("TcpStream.write() waits twice as long with each timeout", () => {
  const [, , once] = arrivals(lineLosing(2));
  // Only one is not acknowledged: the probe comes after two round trips and 200 ms.
  assert(once! > 300 && once! < 500, `${once}`);
  const [, , twice] = arrivals(lineLosing(2, 3));
  assert(twice! > once! + 200 && twice! < once! + 600, `${twice}`);
  const [, , thrice] = arrivals(lineLosing(2, 3, 4));
  assert(thrice! > twice! + 400, `${thrice}`);
});

test("PacketLoss.next() loses the same share one by one and in bursts", () => {
  for (const burstPackets of [1, 5]) {
    const loss = new PacketLoss({ share: 0.02, burstPackets }, seededRandom(3));
    let [lost, runs, wasLost] = [0, 0, false];
    for (let i = 0; i < 200_000; i++) {
      const isLost = loss.next();
      if (isLost) lost++;
      if (isLost && !wasLost) runs++;
      wasLost = isLost;
    }
    assert(Math.abs(lost / 200_000 - 0.02) < 0.003, `${lost}`);
    assert(Math.abs(lost / runs / burstPackets - 1) < 0.1, `${lost / runs}`);
  }
});
