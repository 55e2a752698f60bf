import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { type PlaceMessage, WANTS_TIME, windowNewest } from "../../src/live/messages.ts";
import { CLOSED, emptyPaths, isSmallChange } from "../../src/live/node/neighbour/place.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { type Neighbour, Stage } from "./support.ts";

/** Newest pieces of the WINDOWs sent to `to` in `ms`. */
function told(stage: Stage, to: Neighbour, ms: number): number[] {
  to.link.messages.length = 0;
  stage.pass(ms);
  return to.link.of("window").map(windowNewest);
}

test("LiveNode reports a piece at once to neighbours that lack it, and late to those that reported it", () => {
  const { stage, peers: [parent, lacking, having] } = Stage.joined(3);
  stage.fill(parent!);
  stage.pass(3000);
  stage.header(parent!, 21);
  stage.piece(parent!, 21);
  for (const { peer } of [lacking!, having!]) peer.spokeMs = stage.clock.monotonic();
  stage.window(having!, 10, 22);
  const silent = told(stage, having!, POLICY.sparseWindowMs - 250);
  assertEquals(lacking!.link.of("window").map(windowNewest).at(-1), 21);
  assertEquals(silent, []);
  assertEquals(told(stage, having!, 400), [21]);
});

/** The neighbour has long been told of everything, and the node has a new piece that another one brought. */
function withNews(takesBundles: boolean): { stage: Stage; peer: Neighbour } {
  const { stage, peers: [parent] } = Stage.joined(1);
  stage.fill(parent!);
  const peer = stage.neighbour({ takesBundles });
  stage.window(peer, 10, 21);
  stage.pass(3000);
  stage.header(parent!, 21);
  stage.piece(parent!, 21);
  peer.link.messages.length = peer.link.bundles.length = 0;
  return { stage, peer };
}

test("LiveNode sends a WINDOW along with a PONG when the neighbour understands BUNDLE, and else on its own", () => {
  const { stage, peer } = withNews(true);
  stage.says(peer, { type: "ping", nonce: WANTS_TIME | 5n });
  assertEquals(peer.link.bundles, [["window", "pong"]]);
  assertEquals(peer.link.of("window").map(windowNewest), [21]);

  const old = withNews(false);
  old.stage.says(old.peer, { type: "ping", nonce: WANTS_TIME | 5n });
  assertEquals(old.peer.link.messages.map(({ type }) => type), ["pong"]);
  assertEquals(told(old.stage, old.peer, POLICY.sparseWindowMs), [21]);
  assertEquals(old.peer.link.bundles, []);
});

test("LiveNode tells a new parent which pieces it has, in the same message as the SUB and before it", () => {
  const stage = new Stage();
  const parent = stage.neighbour({ takesBundles: true });
  stage.window(parent, 10, 21);
  stage.header(parent, 16);
  stage.header(parent, 20, { flags: 0 });
  stage.node.tick();
  assertEquals(parent.link.bundles.filter((types) => types.includes("subscribe")), [["window", "place", "subscribe"]]);
});

test("LiveNode reports to a neighbour that keeps up with the stream less often than to one that lags behind", () => {
  const { stage, peers: [parent, current, behind] } = Stage.joined(3);
  stage.fill(parent!);
  stage.window(current!, 10, 21);
  stage.window(behind!, 10, 16);
  for (const { peer } of [current!, behind!]) stage.place({ peer } as Neighbour, { depths: 3, bars: 255 });
  stage.pass(1000);
  for (const { link } of [current!, behind!]) link.messages.length = 0;
  for (let seq = 21; seq < 29; seq++) {
    stage.header(parent!, seq);
    stage.piece(parent!, seq);
    stage.window(current!, 10, seq);
    stage.pass(400);
  }
  // In 3.2 s, the first time at once.
  assertEquals([current!, behind!].map(({ link }) => link.of("window").length), [5, 8]);
});

test("LiveNode sends only the paths that changed, and a neighbour keeps the others", () => {
  const { stage, peers: [parent, other] } = Stage.joined(2);
  stage.fill(parent!);
  const place = (paths: Uint32Array, pathMask: number): PlaceMessage => {
    const [depths, bars] = [new Uint8Array(8).fill(3), new Uint8Array(8)];
    return { type: "place", upBytesPerS: null, depths, bars, paths, pathMask };
  };
  const paths = emptyPaths(8).fill(0x10);
  stage.says(other!, place(paths, 0xff));
  stage.says(other!, place(emptyPaths(8).fill(0x20), 0b10));
  const known = [...other!.peer.place!.paths];
  assertEquals([known.slice(0, 4), known.slice(4, 8), known.slice(8, 12)], [[16, 16, 16, 16], [32, 32, 32, 32], [
    16,
    16,
    16,
    16,
  ]]);
});

test("isSmallChange() is false when a neighbour may decide otherwise", () => {
  const place = (depth: number, bar: number) => {
    return { upBytesPerS: null, depths: new Uint8Array([depth]), bars: new Uint8Array([bar]), paths: emptyPaths(1) };
  };
  const table: [number, number, boolean][] = [
    [10, 12, true],
    [12, 12, true],
    [8, 200, true],
    [13, 12, false],
    [255, 12, false],
    [10, 0, false],
    [10, 1, false],
    [10, CLOSED, false],
  ];
  for (const [depth, bar, isSmall] of table) assertEquals(isSmallChange(place(depth, bar), place(10, 12)), isSmall);
});
