import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { FLAG_DISCONTINUITY } from "../../src/live/header.ts";
import { PieceWindow } from "../../src/live/node/stream/piece-window.ts";
import { StreamRate } from "../../src/live/node/stream/stream-rate.ts";
import { simulatedHeader } from "../simulation/live-network.ts";

const LENGTH = 65_536;

/** A window and the rate of its stream; `told` bytes a second are announced. */
class Stream {
  readonly window = new PieceWindow(30_000);
  readonly rate: StreamRate;
  #seq = 0;
  #ms = 1_000_000;

  constructor(told: number) {
    this.rate = new StreamRate(this.window, { bytesPerS: told, pieceLengthBytes: LENGTH });
  }

  /** `count` pieces come, each `lengthBytes` long and `everyMs` after the one before; of some no header. */
  run(
    count: number,
    everyMs: number,
    { lengthBytes = LENGTH, flags = 0, lost = () => false }: {
      lengthBytes?: number;
      flags?: number;
      lost?: (piece: number) => boolean;
    } = {},
  ): void {
    for (let i = 0; i < count; i++) {
      const header = simulatedHeader({
        seq: this.#seq,
        timestampMs: this.#ms,
        flags: i === 0 ? flags : 0,
        lengthBytes,
      });
      if (!lost(i)) this.window.addHeader(header);
      this.#seq++;
      this.#ms += everyMs;
    }
  }

  /** Time goes by without a piece. */
  stand(ms: number): void {
    this.#ms += ms;
  }
}

function near(actual: number, expected: number): void {
  assert(Math.abs(actual / expected - 1) < 0.05, `${actual}, not ${expected}`);
}

test("StreamRate.bytesPerS is the announced one until half a second is known, then that of the signed headers", () => {
  for (const told of [1000, 125_000, 12_500_000]) {
    const stream = new Stream(told);
    assertEquals(stream.rate.bytesPerS, told);
    stream.run(2, 250);
    assertEquals(stream.rate.bytesPerS, told);
    stream.run(4, 250);
    near(stream.rate.bytesPerS, 4 * LENGTH);
  }
});

test("StreamRate.bytesPerS rises within seconds after a slate, and falls only with the window", () => {
  const stream = new Stream(18_000);
  stream.run(40, 500, { lengthBytes: 9000 });
  near(stream.rate.bytesPerS, 18_000);
  stream.run(17, 250);
  near(stream.rate.bytesPerS, 4 * LENGTH);
  stream.run(4, 500, { lengthBytes: 9000 });
  assert(stream.rate.bytesPerS > 40_000, `${stream.rate.bytesPerS}`);
  stream.run(62, 500, { lengthBytes: 9000 });
  near(stream.rate.bytesPerS, 18_000);
});

test("StreamRate.bytesPerS takes a rise for what it is within a second when no keyframe could be the cause", () => {
  const stream = new Stream(18_000);
  stream.run(40, 500, { lengthBytes: 9000 });
  stream.run(4, 250);
  near(stream.rate.bytesPerS, 4 * LENGTH);
});

test("StreamRate.bytesPerS does not take a second with a keyframe for the rate of the stream", () => {
  const stream = new Stream(4 * LENGTH);
  stream.run(40, 250);
  stream.run(6, 125);
  assert(stream.rate.bytesPerS < 5.5 * LENGTH, `${stream.rate.bytesPerS / LENGTH}`);
});

test("StreamRate.bytesPerS counts pieces whose headers are missing, and no time in which the source was away", () => {
  const stream = new Stream(1000);
  stream.run(20, 250, { lost: (piece) => piece % 3 === 1 });
  near(stream.rate.bytesPerS, 4 * LENGTH);
  stream.stand(20_000);
  stream.run(4, 250, { flags: FLAG_DISCONTINUITY });
  near(stream.rate.bytesPerS, 4 * LENGTH);
});

test("StreamRate.bytesPerS stays as it is when the stream swings by less than 5 %", () => {
  const stream = new Stream(4 * LENGTH);
  for (const everyMs of [250, 254, 246, 251]) {
    stream.run(8, everyMs);
    assertEquals(stream.rate.bytesPerS, 4 * LENGTH);
  }
});

test("StreamRate.pieces() gives as many as the stream has in that time, and no fewer than asked for", () => {
  const stream = new Stream(1000);
  stream.run(100, 25);
  near(stream.rate.pieces(16_000, 64), 640);
  assertEquals(stream.rate.pieces(100, 64), 64);
});

test("StreamRate.bytesPerS leaves out a burst with which the stream begins", () => {
  const stream = new Stream(4 * LENGTH);
  stream.run(16, 1);
  stream.run(17, 250);
  near(stream.rate.bytesPerS, 4 * LENGTH);
});
