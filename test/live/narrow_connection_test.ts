import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { POLICY } from "../../src/live/node/policy.ts";
import { UnsubscribeReason } from "../../src/live/messages.ts";
import { type Neighbour, publish, Stage } from "./support.ts";

/** Of `Stage`: a piece lasts for half a second. */
const BYTES_PER_S = 125_000;
const ALL = 0xff;
const HALF = 0x0f;

/** A source with uplink to spare; `slow` has a place in all substreams, and `quick` in half of them. */
function broadcast(): { stage: Stage; slow: Neighbour; quick: Neighbour } {
  const stage = new Stage({ role: "source", uplinkBytesPerS: 8 * BYTES_PER_S });
  publish(stage, 0);
  const [slow, quick] = [ALL, HALF].map((mask) => {
    const child = stage.neighbour({ upBytesPerS: 4 * BYTES_PER_S });
    child.peer.deliveredBytes = 1;
    stage.says(child, { type: "subscribe", mask, from: 1 });
    return child;
  });
  return { stage, slow: slow!, quick: quick! };
}

/** The first block that is under way to `to` arrives. */
function deliversOne(stage: Stage, to: Neighbour): void {
  const at = to.link.messages.findIndex(({ type }) => type === "ping");
  if (at >= 0) stage.says(to, to.link.messages.splice(at, 1)[0]!);
}

/**
 * `seconds` of stream from piece `seq` on. Of the four blocks of a piece, `carried` reach `slow`. Returns what `slow` had
 * after each second.
 */
function stream(
  { stage, slow, quick }: ReturnType<typeof broadcast>,
  { seq, seconds, carried }: { seq: number; seconds: number; carried: number },
): number[] {
  const masks: number[] = [];
  for (let piece = 0; piece < 2 * seconds; piece++) {
    publish(stage, seq + piece);
    for (let step = 0; step < 5; step++) {
      stage.echoes(quick);
      if (step < carried) deliversOne(stage, slow);
      for (const peer of stage.node.peers) peer.heardMs = stage.clock.monotonic();
      stage.clock.advance(100);
      stage.node.tick();
    }
    if (piece % 2 === 1) masks.push(slow.childMask);
  }
  return masks;
}

function places(mask: number): number {
  return [...mask.toString(2)].filter((bit) => bit === "1").length;
}

test("Serving.tick() takes places that another child has away from one whose connection does not carry them, one a second", () => {
  const run = broadcast();
  const masks = stream(run, { seq: 1, seconds: 12, carried: 1 });
  const { slow } = run;
  assertEquals(masks.at(-1)! & ~HALF, ALL & ~HALF);
  assert(places(masks.at(-1)!) < 8, `${masks}`);
  masks.reduce((before, mask) => {
    assert(places(before) - places(mask) <= 1, `${masks}`);
    return mask;
  }, ALL);
  const lost = slow.link.of("unsubscribe");
  assertEquals(lost.map(({ mask, reason }) => [places(mask), reason]), lost.map(() => [1, UnsubscribeReason.full]));
  assertEquals(lost.reduce((sum, { mask }) => sum | mask, 0), ALL & ~masks.at(-1)!);
});

test("Serving.tick() takes no places away from a child whose connection carries them", () => {
  const run = broadcast();
  assertEquals(new Set(stream(run, { seq: 1, seconds: 12, carried: 5 })), new Set([ALL]));
});

test("Children.accept() gives a child no further place while its connection does not carry those it has, except where there is no other", () => {
  const run = broadcast();
  const { stage, slow, quick } = run;
  const had = stream(run, { seq: 1, seconds: 12, carried: 1 }).at(-1)!;
  const taken = ALL & ~had;
  stage.says(slow, { type: "subscribe", mask: taken, from: 20 });
  assertEquals(slow.childMask, had);
  stage.says(quick, { type: "unsubscribe", mask: taken, reason: UnsubscribeReason.moved });
  stage.says(slow, { type: "subscribe", mask: taken, from: 20 });
  assertEquals(slow.childMask, ALL);
});

test("Children.accept() gives such a child places again once it has been quick for a while", () => {
  const run = broadcast();
  const { stage, slow } = run;
  const taken = ALL & ~stream(run, { seq: 1, seconds: 12, carried: 1 }).at(-1)!;
  assert(taken !== 0);
  stream(run, { seq: 25, seconds: 2 + POLICY.avoidMs / 1000, carried: 5 });
  stage.says(slow, { type: "subscribe", mask: taken, from: 60 });
  assertEquals(slow.childMask, ALL);
});
