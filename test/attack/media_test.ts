/** Media files made to cost: a few kilobytes that ask for much work, memory, or an endless answer. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { fragmentTail, irregularFile, longFragments, sidxFile, tabledFile } from "../media/support/hostile.ts";
import { type SeededFiles, seedFiles } from "../support/engine.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

/** How much of a response the client reads before it stops. */
const READ_BYTES = 2_000_000;

const FILES: Readonly<Record<string, () => Uint8Array>> = {
  "tail.mp4": () => fragmentTail(1024 * 1024),
  "short-tail.mp4": () => fragmentTail(10_000),
  "bytes-tail.mp4": () => fragmentTail(512 * 1024, 1),
  "far-apart.mp4": () => tabledFile({ count: 100_000, delta: 90 * 90_000, keyframes: [1] }),
  "one-segment.mp4": () => tabledFile({ count: 100_000, delta: 108_000, keyframes: [1] }),
  "many.mp4": () => tabledFile({ count: 3_900_000, delta: 3600 }),
  "segments.mp4": () => tabledFile({ count: 4_000_000, delta: 6 * 90_000 }),
  "long.mp4": () => longFragments(0xfffffffe),
  "index.mp4": () => sidxFile(60_000),
};

/**
 * Plays a magnet like a page that was told of it; returns the status and how much of the answer came. Status 0: the connection
 * ended before the head was read, as Bun's may when a file turns out to be hostile at its beginning.
 */
async function play(target: Target, path: string, magnet: string, pid: string) {
  const address = `${target.url}/engine/${path}?magnet=${encodeURIComponent(magnet)}&pid=${pid}`;
  // Bun's fetch does not retry when a kept connection was closed meanwhile.
  const response = await fetch(address, { headers: { connection: "close" } }).catch(() => null);
  if (response === null) return { status: 0, bytes: 0 };
  if (response.body === null) return { status: response.status, bytes: 0 };
  let bytes = 0;
  try {
    for await (const chunk of response.body) if ((bytes += chunk.length) >= READ_BYTES) break;
  } catch {
    // What turns out to be hostile on the way ends the answer.
  }
  return { status: response.status, bytes };
}

test("media files that demand much cost other clients nothing, one by one or all at once, as a stream or as HLS", async () => {
  const seeds: (SeededFiles & { readonly path: string })[] = [];
  for (const [path, make] of Object.entries(FILES)) {
    seeds.push({ path, ...await seedFiles([{ path, bytes: make() }], { pieceLengthBytes: 256 * 1024 }) });
  }
  const costs: string[] = [];
  const check = async (what: string, target: Target, attack: () => Promise<void>) => {
    const { longestGapMs, growthMib } = await assertHarmless(target, attack);
    costs.push(`${what}: ${Math.round(longestGapMs)} ms, ${Math.round(growthMib)} MiB`);
  };
  try {
    await withTarget(async (target) => {
      await check("one by one", target, async () => {
        for (const { path, magnet } of seeds) {
          const { status } = await play(target, "manifest.m3u8", magnet, path);
          assert(status === 200 || status === 415, `${path}: ${status}`);
        }
      });
    });
    await withTarget(async (target) => {
      await check("all at once", target, async () => {
        const all = seeds.map(({ path, magnet }) => play(target, "getstream", magnet, path));
        for (const { status } of await Promise.all(all)) assert([0, 200, 415, 429, 503].includes(status), `${status}`);
      });
      const magnet = encodeURIComponent(seeds.find(({ path }) => path === "far-apart.mp4")!.magnet);
      const refused = await fetch(`${target.url}/engine/getstream?magnet=${magnet}&pid=words`);
      assertEquals(refused.status, 415);
      assert((await refused.text()).includes("days or more"), "the error says why");
    });
  } finally {
    await Promise.all(seeds.map((seed) => seed.close()));
    console.log(`  ${costs.join("; ")}`);
  }
});

/** A page that the user lets play. */
const PAGE = { origin: "http://page.example", "sec-fetch-site": "cross-site" };

test("a page that may play opens films with large indexes, again and again, in bounded memory", async () => {
  const seed = await seedFiles([{ path: "film.mp4", bytes: irregularFile(2_000_000) }], {
    pieceLengthBytes: 256 * 1024,
  });
  try {
    await withTarget(async (target) => {
      // The user must have the film already, because for a page the engine dials no peer on this machine.
      assertEquals((await play(target, "getstream", seed.magnet, "own")).status, 200);
      const statuses: number[] = [];
      const { longestGapMs, growthMib } = await assertHarmless(target, async () => {
        const start = async (n: number) => {
          const query = new URLSearchParams({
            magnet: seed.magnet,
            pid: `film${n}`,
            preferred_audio_language: `l${n}`,
            use_api_stop: "1",
          });
          const answer = await fetch(`${target.url}/engine/getstream?${query}`, {
            headers: { ...PAGE, connection: "close" },
            redirect: "manual",
          });
          await answer.body?.cancel();
          statuses.push(answer.status);
        };
        for (let n = 0; n < 16; n++) await start(n);
        await Promise.all(Array.from({ length: 16 }, (_, n) => start(16 + n)));
      });
      console.log(`  ${statuses.sort()}: ${Math.round(longestGapMs)} ms, ${Math.round(growthMib)} MiB`);
      assert(statuses.filter((status) => status === 302).length > 1, "some are opened");
      assert(statuses.every((status) => [302, 429, 503].includes(status)), String(statuses));
    }, ["--allow-origin", PAGE.origin]);
  } finally {
    await seed.close();
  }
});
