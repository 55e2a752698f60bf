/** Seeders that freeze, die and come back, and none at all but a web server. */
import { test } from "node:test";
import { createServer } from "node:http";
import process from "node:process";
import type { AddressInfo } from "node:net";
import { assert, assertEquals, assertLess } from "@std/assert";
import { freePort } from "../support/tracker.ts";
import { type Client, libtorrent } from "./peers/clients.ts";
import { assertSame, type Content, withContent } from "./peers/content.ts";
import { playAll, startPlayback, withPlayer } from "./peers/ours.ts";

const MIB = 2 ** 20;

/** Reads a whole body, calling `onBytes` with the number so far; returns it with the longest wait for bytes, ms. */
async function readWatching(url: string, onBytes: (total: number) => unknown) {
  const response = await fetch(url, { signal: AbortSignal.timeout(45_000) });
  assertEquals(response.status, 200);
  const chunks: Uint8Array[] = [];
  let [total, longestMs, lastMs] = [0, 0, performance.now()];
  for await (const chunk of response.body!) {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    chunks.push(chunk);
    total += chunk.length;
    await onBytes(total);
  }
  return { bytes: new Uint8Array(Buffer.concat(chunks)), longestMs };
}

test("playback continues when one of two seeders freezes", async () => {
  await withContent({ filmMib: 8 }, async (content, cleanup) => {
    const seeders: Client[] = [];
    for (let i = 0; i < 2; i++) {
      const seeder = await libtorrent(content, { mode: "seed", uploadLimit: 1.5 * MIB });
      cleanup(() => seeder.stop());
      seeders.push(seeder);
    }
    await withPlayer({}, async (player) => {
      const magnet = content.magnet({ peers: seeders.map((seeder) => seeder.peer) });
      const url = await startPlayback(player, "getfile", { magnet });
      let frozen = false;
      const { bytes, longestMs } = await readWatching(url, (total) => {
        if (frozen || total < MIB) return;
        frozen = true;
        // Not child.kill(), after which Deno would take the child for ended.
        process.kill(seeders[0]!.program.child.pid!, "SIGSTOP");
      });
      assert(frozen);
      assertSame(bytes, content.files[0]!.bytes, "film");
      assertLess(longestMs, 2_500, "longest wait for bytes");
    });
  });
});

test("playback continues when the only seeder is killed and comes back", async () => {
  await withContent({ filmMib: 4 }, async (content, cleanup) => {
    const port = await freePort();
    const options = { mode: "seed", port, uploadLimit: 1.5 * MIB } as const;
    const first = await libtorrent(content, options);
    cleanup(() => first.stop());
    await withPlayer({}, async (player) => {
      const url = await startPlayback(player, "getfile", { magnet: content.magnet({ peers: [first.peer] }) });
      let killed = false;
      const { bytes } = await readWatching(url, async (total) => {
        if (killed || total < MIB) return;
        killed = true;
        await first.stop();
        const second = await libtorrent(content, options);
        cleanup(() => second.stop());
      });
      assert(killed);
      assertSame(bytes, content.files[0]!.bytes, "film");
    });
  });
});

/** Serves the content as a plain web server does, with ranges; returns the root and the requests served. */
async function serveFiles(content: () => Content): Promise<{ root: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url!, "http://x").pathname);
    const file = content().files.find((file) => path === `/files/pack/${file.path}`);
    if (file === undefined) return void response.writeHead(404).end();
    const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const from = Number(match?.[1] ?? 0), to = Number(match?.[2] || file.bytes.length - 1);
    response.writeHead(match === null ? 200 : 206, {
      "content-length": to + 1 - from,
      "accept-ranges": "bytes",
      ...(match === null ? {} : { "content-range": `bytes ${from}-${to}/${file.bytes.length}` }),
    });
    response.end(file.bytes.subarray(from, to + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    root: `http://127.0.0.1:${(server.address() as AddressInfo).port}/files/`,
    stop: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  };
}

test("plays from a web seed without any peer", async () => {
  let served: Content | null = null;
  const web = await serveFiles(() => served!);
  try {
    await withContent({ webSeeds: [web.root] }, async (content) => {
      served = content;
      await withPlayer({}, async (player) => {
        await playAll(player, content, content.transportFile);
        assertEquals(player.engine.swarms.list()[0]!.status().peers, 0);
      });
    });
  } finally {
    await web.stop();
  }
});
