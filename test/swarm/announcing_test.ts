import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { createDiscovery } from "../../src/discovery/discovery.ts";
import { startHttpTracker } from "../discovery/support/http-tracker.ts";
import { testPorts } from "../discovery/support/ports.ts";
import { until } from "../support/until.ts";
import { Lab } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";

test("TorrentSwarm first announces once it knows what is left: nothing as a seeder, all as a newcomer", async () => {
  const torrent = await makeTorrent({ bytes: 300_000 });
  const tracker = await startHttpTracker((_, response) => response.end("d8:intervali1800e5:peers0:e"));
  const discover = () =>
    createDiscovery(testPorts(), {
      peerId: crypto.getRandomValues(new Uint8Array(20)),
      peerPort: () => 1,
      trackers: [`${tracker.origin}/announce`],
      dht: { enabled: false, bootstrap: [], statePath: null },
      lsd: { enabled: false },
      userAgent: "millrace/test",
    });
  const discoveries = [await discover(), await discover()];
  try {
    await Lab.run(async (lab) => {
      await lab.seeder(torrent, { discovery: discoveries[0]! });
      await until("the seeder is announced", () => tracker.seen.length > 0);
      const newcomer = await lab.node({ discovery: discoveries[1]! });
      newcomer.join({ metainfo: torrent.metainfo });
      await until("the newcomer is announced", () => tracker.seen.length > 1);
      const told = tracker.seen.map(({ query }) => [query.get("event"), query.get("left")]);
      assertEquals(told, [["started", "0"], ["started", "300000"]]);
    });
    assert(tracker.seen.slice(2).every(({ query }) => query.get("event") === "stopped"));
    assertEquals(tracker.seen.length, 4);
  } finally {
    for (const discovery of discoveries) await discovery.close();
    await tracker.close();
  }
});
