import process from "node:process";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { CLOSED, emptyPaths } from "../../src/live/node/neighbour/place.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { LIES_VARIABLE } from "../../scripts/live-wan/liar/lies-variable.ts";
import { LIAR_UP_SHARE, liedPlace } from "../simulation/lies.ts";
import { SIMULATED_VERIFIER } from "../simulation/live-network.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { ScriptedLink } from "./support.ts";

const BYTES_PER_S = 125_000;
const BLOCK_BYTES = 16_384;
const SUBSTREAMS = 8;

test("LiveNode of a lying engine claims a place next to the source, and keeps blocks but not proofs", async () => {
  process.env[LIES_VARIABLE] = "sinkhole";
  const { LiveNode } = await import("../../scripts/live-wan/liar/lying-node.ts");
  const node = new LiveNode({
    clock: new FakeClock(),
    verifier: SIMULATED_VERIFIER,
    random: () => 0.5,
    role: "viewer",
    stream: { pieceLengthBytes: 65536, bytesPerS: BYTES_PER_S, substreams: SUBSTREAMS, windowS: 30 },
    uplinkBytesPerS: null,
  });
  const link = new ScriptedLink();
  const peer = node.connected(link, { role: "viewer", upBytesPerS: null, takesBundles: true });
  const [place] = link.of("place");
  assertEquals(place!.upBytesPerS, LIAR_UP_SHARE * BYTES_PER_S);
  assertEquals([...place!.depths, ...place!.bars], [...Array(SUBSTREAMS).fill(1), ...Array(SUBSTREAMS).fill(0)]);
  peer.link.piece(1, 0, new Uint8Array(BLOCK_BYTES));
  peer.link.piece(1, 0, new Uint8Array(POLICY.proofBytes));
  assertEquals(link.pieces.map(({ data }) => data.length), [POLICY.proofBytes]);
});

test("liedPlace() says what each kind of liar claims", () => {
  const said = (["closed", "sinkhole", "flapper", "pathpoison"] as const).map((kind) => {
    const place = liedPlace(
      {
        type: "place",
        upBytesPerS: 1000,
        depths: new Uint8Array(SUBSTREAMS).fill(7),
        bars: new Uint8Array(SUBSTREAMS).fill(9),
        paths: emptyPaths(SUBSTREAMS),
        pathMask: 0,
      },
      kind,
      5_000_000,
    );
    return [kind, place.upBytesPerS, place.depths[0], place.bars[0], place.paths[0], place.pathMask];
  });
  assertEquals(said, [
    ["closed", 5_000_000, 7, CLOSED, 0, 0],
    ["sinkhole", 5_000_000, 1, 0, 0, 0],
    ["flapper", 5_000_000, 7, 9, 0, 0],
    ["pathpoison", 5_000_000, 1, 0, 0xffffffff, 0xff],
  ]);
});
