import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { fedThrough } from "../../src/live/node/trees/fed-through.ts";
import type { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { emptyPaths, type Mark, PATH_WORDS, UNFED } from "../../src/live/node/neighbour/place.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { type Neighbour, Stage } from "./support.ts";

const OWN: Mark = [1, 0, 0, 0];
const CHILD: Mark = [0, 2, 0, 0];
const ABOVE: Mark = [4, 0, 0, 0];
const BELOW: Mark = [0, 0, 8, 0];

/** Neighbours with these paths of substream 1; `null`: it says that nothing reaches it. */
function peersWith(...paths: (readonly Mark[] | null)[]): LivePeer[] {
  const stage = new Stage();
  return paths.map((marks) => {
    const neighbour = stage.neighbour();
    stage.place(neighbour, { depths: marks === null ? UNFED : 3, bars: 0, paths: pathsOf(marks ?? []) });
    return neighbour.peer;
  });
}

function pathsOf(marks: readonly Mark[]): Uint32Array {
  const paths = emptyPaths(8);
  for (const mark of marks) mark.forEach((word, i) => paths[PATH_WORDS + i]! |= word);
  return paths;
}

for (
  const [what, marks, count] of [
    ["is below the child", [ABOVE, OWN, CHILD, BELOW], 1],
    ["is below us, but not below the child", [ABOVE, OWN, BELOW], 0],
    ["shows the child's mark without ours", [ABOVE, CHILD, BELOW], 0],
    ["gets nothing", null, 0],
  ] as const
) {
  test(`fedThrough() counts ${count === 1 ? "a" : "no"} neighbour that ${what}`, () => {
    const [child, other] = peersWith([ABOVE, OWN, CHILD], marks);
    const own = { mark: OWN, path: pathsOf([ABOVE]) };
    assertEquals(fedThrough(child!, 1, own, [child!, other!]), count);
    assertEquals(fedThrough(child!, 0, own, [child!, other!]), 0);
  });
}

test("fedThrough() counts nobody for a child that reports our path as its own, or none", () => {
  const [copying, silent, other] = peersWith([ABOVE, OWN], null, [ABOVE, OWN, CHILD]);
  const own = { mark: OWN, path: pathsOf([ABOVE]) };
  assertEquals([copying!, silent!].map((child) => fedThrough(child, 1, own, [other!])), [0, 0]);
});

for (const isLarge of [true, false]) {
  test(`Children of a viewer takes a place from ${isLarge ? "whom the fewest are fed through" : "the weakest"}, for a substream that has none, while it has ${isLarge ? "many" : "few"} neighbours`, () => {
    // Room for three.
    const { stage, peers: [parent] } = Stage.joined(1, { uplinkBytesPerS: 0.45 * 125_000 });
    stage.fill(parent!);
    const head = stage.neighbour({ upBytesPerS: 60_000 });
    const leaf = stage.neighbour({ upBytesPerS: 500_000 });
    const other = stage.neighbour({ upBytesPerS: 400_000 });
    for (const child of [head, leaf, other]) stage.says(child, { type: "subscribe", mask: 0x02, from: 20 });
    stage.pass(300);
    assertEquals([head, leaf, other].map(({ childMask }) => childMask), [0x02, 0x02, 0x02]);
    const told = head.link.of("place").findLast(({ pathMask }) => pathMask === 0xff)!.paths!;
    const through = (neighbour: Neighbour, upBytesPerS: number, ...bits: number[]) => {
      const paths = told.slice();
      for (const bit of bits) paths[PATH_WORDS + 3]! |= 1 << bit;
      stage.place(neighbour, { upBytesPerS, depths: 3, bars: 0, paths });
    };
    through(head, 60_000, 1);
    through(leaf, 500_000, 2);
    through(other, 400_000, 3);
    through(stage.neighbour(), 60_000, 1, 4);
    through(stage.neighbour(), 60_000, 3, 5);
    if (isLarge) { for (let i = 0; i < POLICY.largeNeighbourhood; i++) stage.neighbour(); }
    const newcomer = stage.neighbour({ upBytesPerS: 30_000 });
    stage.says(newcomer, { type: "subscribe", mask: 0x01, from: 20 });
    const masks = [head, leaf, other, newcomer].map(({ childMask }) => childMask);
    assertEquals(masks, isLarge ? [0x02, 0, 0x02, 0x01] : [0, 0x02, 0x02, 0x01]);
  });
}
