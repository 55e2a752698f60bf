import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { Children } from "../../src/live/node/trees/children.ts";
import { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { NodeView } from "../../src/live/node/neighbour/node-view.ts";
import type { Parents } from "../../src/live/node/trees/parents.ts";
import { Seats } from "../../src/live/node/trees/seats.ts";
import type { Uploader } from "../../src/live/node/line/uploader.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { SIMULATED_VERIFIER } from "../simulation/live-network.ts";
import { ScriptedLink } from "./support.ts";

/** A rate at which three, six and twelve places divided by one place make a little more than three, six and twelve. */
const BYTES_PER_S = 235_000.7;

test("Children.excess() takes every place away, and no more, when the line turns out to carry none", () => {
  for (const places of [1, 2, 3, 6, 12, 16]) {
    const seats = new Seats(8);
    const view = new NodeView(
      {
        clock: new FakeClock(),
        verifier: SIMULATED_VERIFIER,
        random: () => 0.5,
        role: "source",
        stream: { pieceLengthBytes: 65_536, bytesPerS: BYTES_PER_S, substreams: 8, windowS: 30 },
        uplinkBytesPerS: null,
      },
      seats,
      () => {},
    );
    const line = { isMeasured: true, uplinkBytesPerS: 8 * BYTES_PER_S, pushDelayMs: 0, standingDelayMs: 0 };
    const children = new Children(view, seats, line as Uploader, { feeds: () => false } as unknown as Parents);
    for (let left = places; left > 0; left -= 8) {
      const info = { role: "viewer", upBytesPerS: 4 * BYTES_PER_S } as const;
      const peer = new LivePeer(new ScriptedLink(), info, view.now());
      view.peers.add(peer);
      children.accept(peer, 2 ** Math.min(8, left) - 1, view.now());
    }
    assertEquals(children.total, places);
    Object.assign(line, { uplinkBytesPerS: 1, pushDelayMs: 60_000 });
    const lost = children.excess(view.now());
    assertEquals(lost.reduce((sum, [, mask]) => sum + mask.toString(2).replaceAll("0", "").length, 0), places);
    assertEquals(children.total, 0);
  }
});
