/**
 * A client that stops reading. Apart from the others: it measures the memory of its process, which other tests would share.
 */
import { connect, type Socket } from "node:net";
import process from "node:process";
import { after, before, test } from "node:test";
import { assertLess } from "@std/assert";
import {
  assertSameBytes,
  bytesOf,
  MIB,
  type SeededNoise,
  seedNoise,
  startSession,
  statOf,
} from "../loopback/support.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";

const SIZE = 48 * MIB;
let seeder: SeededNoise;
before(async () => {
  seeder = await seedNoise(SIZE);
});
after(() => seeder?.close());

const received = (served: ServedEngine) => served.engine.swarms.list()[0]?.status().downloadedBytes ?? 0;

/** A client that requests `url` and does not read until the test makes it. */
async function stalledClient(url: string): Promise<Socket> {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  socket.pause();
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
  return socket;
}

test("a client that stops reading costs bounded memory and slows nobody down", async () => {
  const served = await serveEngine({ cacheLimitBytes: 8 * MIB });
  const sockets: Socket[] = [];
  try {
    const stalled = await Promise.all(
      Array.from({ length: 8 }, (_, n) => startSession(served, "getfile", { magnet: seeder.magnet, pid: `idle ${n}` })),
    );
    for (const { playback_url } of stalled) sockets.push(await stalledClient(playback_url));
    let last = -1;
    await until("what the stalled clients ask for has come", () => {
      const now = received(served);
      const same = now === last && now > 0;
      last = now;
      return same;
    });
    const rssBefore = process.memoryUsage().rss;
    const pulled = received(served);
    assertLess(pulled, 12 * MIB, "eight readers at one place fetch their window once");
    const active = await startSession(served, "getfile", { magnet: seeder.magnet, pid: "active" });
    assertSameBytes(await bytesOf(active.playback_url, 8 * MIB, 40 * MIB), seeder.data.subarray(8 * MIB, 40 * MIB));
    assertLess(process.memoryUsage().rss - rssBefore, 200 * MIB);
    const used = (await statOf(active)).disk_cache_stats as { active_inuse: number; inactive_inuse: number };
    assertLess(used.active_inuse + used.inactive_inuse, 24 * MIB);
    let taken = 0;
    const socket = sockets[0]!;
    socket.on("data", (chunk) => taken += chunk.length);
    socket.resume();
    await until("a stalled client that reads again goes on", () => taken > 4 * MIB);
  } finally {
    for (const socket of sockets) socket.destroy();
    await served.close();
  }
});
