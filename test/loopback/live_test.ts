/** Broadcasts over real TCP: what viewers get is what was sent. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { parseLiveTransportFile } from "../../src/metainfo/live.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { heldUp } from "../support/held-up.ts";
import { start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { LiveLab, RATE, type Viewer } from "../live/live-lab.ts";
import { assertIdentical } from "./live-support.ts";

test("three viewers get every byte of a broadcast over TCP", async () => {
  await LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast, swarm } = await lab.broadcast(home);
    await until("pieces to join with", () => swarm.node.window.solid >= 6);
    const others = heldUp();
    const viewers = await Promise.all([0, 1, 2].map(() => lab.viewer(broadcast.metainfo, [home.address])));
    await until("the start of each viewer", () => viewers.every(({ startMs }) => startMs() !== null))
      .finally(() => others.stop());
    for (const viewer of viewers) assertLess(viewer.startMs()! - others.ms(), 1500);
    await until("ten pieces at each viewer", () => viewers.every(({ got }) => got.size >= 10));
    for (const viewer of viewers) assertIdentical(viewer, swarm);
    await until(
      "a parent for each substream",
      () => viewers.every(({ swarm }) => swarm.status().parents === broadcast.metainfo.substreams),
    );
    await until("one connection to each", () => broadcast.status().peers === 3);
    const sourcesOf = (viewer: Viewer) => [...viewer.swarm.node.peers].filter(({ isSource }) => isSource).length;
    await until("the broadcaster's proof to each", () => viewers.every((viewer) => sourcesOf(viewer) === 1));
  });
});

/** Starts a broadcaster in a process of its own. */
async function broadcaster(directory: string, port: number) {
  const script = new URL("./support/broadcast-process.ts", import.meta.url).pathname;
  const deno = "Deno" in globalThis ? ["run", "-A", "--no-check"] : [];
  const program = start(process.execPath, [...deno, script, directory, String(port)]);
  const [, ownPort, infohash] = await program.line(/^ready (\d+) (\w+)/);
  return { program, port: Number(ownPort), infohash: infohash! };
}

test(
  "viewers go on within 2 s of the return of a broadcaster that was killed, under the same id",
  { timeout: 60_000 },
  async () => {
    const directory = await temporaryDirectory();
    try {
      await LiveLab.run(async (lab) => {
        const first = await broadcaster(directory.path, 0);
        let second: Awaited<ReturnType<typeof broadcaster>> | null = null;
        try {
          const metainfo = await parseLiveTransportFile(await readFile(join(directory.path, "broadcast.torrent")));
          const address = { host: "127.0.0.1", port: first.port };
          const one = await lab.viewer(metainfo, [address]);
          const two = await lab.viewer(metainfo, [one.address]);
          const viewers = [one, two];
          await until("five pieces at each viewer", () => viewers.every(({ got }) => got.size >= 5));
          process.kill(first.program.child.pid!, "SIGKILL");
          await first.program.exited;
          await until("the viewers noticed", () => one.swarm.status().peers === 1);
          const before = viewers.map(({ got }) => Math.max(...got.keys()));
          second = await broadcaster(directory.path, first.port);
          assertEquals(second.infohash, first.infohash);
          const backMs = performance.now();
          const others = heldUp();
          await until("new pieces", () => viewers.every(({ got }, i) => Math.max(...got.keys()) > before[i]! + 1))
            .finally(() => others.stop());
          const tookMs = performance.now() - backMs - others.ms();
          const [, head] = await second.program.line(/^first (\d+)/);
          assert(Number(head) > Math.max(...before), "no number comes twice");
          assertLess(tookMs, 2000);
          if (process.platform !== "win32") {
            assertEquals((await stat(join(directory.path, "state"))).mode & 0o777, 0o600);
          }
        } finally {
          await first.program.stop();
          await second?.program.stop();
        }
      });
    } finally {
      await directory.remove();
    }
  },
);

test("a broadcaster that comes back at another port finds its viewers", { timeout: 60_000 }, async () => {
  const directory = await temporaryDirectory();
  try {
    await LiveLab.run(async (lab) => {
      const home = await lab.node();
      const { broadcast } = await lab.broadcast(home, { directory: directory.path });
      const viewer = await lab.viewer(broadcast.metainfo, [home.address]);
      await until("pieces", () => viewer.got.size >= 3);
      await broadcast.close();
      const head = Math.max(...viewer.got.keys());
      const elsewhere = await lab.node();
      await lab.broadcast(elsewhere, { directory: directory.path });
      await until("new pieces", () => Math.max(...viewer.got.keys()) > head + 1, 5000);
    });
  } finally {
    await directory.remove();
  }
});

test("a source that ends ends the feed of every viewer; one that is lost is marked", async () => {
  await LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast, input, swarm } = await lab.broadcast(home);
    const viewer = await lab.viewer(broadcast.metainfo, [home.address]);
    await until("pieces", () => viewer.got.size >= 3);
    input.lose("gone");
    const head = broadcast.status().headSeq;
    await until("the piece after the loss", () => broadcast.status().headSeq > head + 2);
    input.end();
    await broadcast.done;
    await until("the end", () => viewer.feed.ended);
    assertIdentical(viewer, swarm);
    const flags = [...viewer.got.keys()].map((seq) => viewer.swarm.node.window.get(seq)!.header!.flags);
    assertEquals(flags.filter((flag) => (flag & 2) !== 0).length, 1);
  });
});

test("leases share one swarm, which lingers when the last is released", async () => {
  await LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast } = await lab.broadcast(home);
    const viewer = await lab.viewer(broadcast.metainfo, [home.address]);
    const other = lab.watch(viewer, broadcast.metainfo, []);
    assert(other.swarm === viewer.swarm);
    await until("pieces at both", () => viewer.got.size > 0 && other.got.size > 0);
    assertEquals(broadcast.status().peers, 1);
    viewer.lease.release();
    viewer.lease.release();
    other.lease.release();
    assertEquals(viewer.live.list().length, 1);
    assert(lab.watch(viewer, broadcast.metainfo, []).swarm === viewer.swarm);
  });
});

test("encrypted connections carry a broadcast as plain ones do", async () => {
  await LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast, swarm } = await lab.broadcast(home);
    const viewers = await Promise.all([0, 1].map(() => {
      return lab.viewer(broadcast.metainfo, [home.address], { encryption: "prefer" });
    }));
    await until("five pieces at each viewer", () => viewers.every(({ got }) => got.size >= 5));
    for (const viewer of viewers) assertIdentical(viewer, swarm);
  });
});

test(
  "a broadcaster that is full makes room for newcomers, who find the others through it",
  { timeout: 60_000 },
  async () => {
    await LiveLab.run(async (lab) => {
      const home = await lab.node({ maxPeersPerSwarm: 12 });
      const { broadcast, swarm } = await lab.broadcast(home, { uploadLimitBytesPerSecond: 2 * RATE });
      await until("pieces to join with", () => swarm.node.window.solid >= 4);
      const viewers = await Promise.all(
        Array.from({ length: 14 }, () => lab.viewer(broadcast.metainfo, [home.address])),
      );
      await until("all play", () => viewers.every(({ got }) => got.size >= 4), 50_000);
      assert(swarm.peers.count <= 12);
    });
  },
);
