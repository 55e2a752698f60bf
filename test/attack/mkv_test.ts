/** Matroska files made to freeze the engine or fill its memory. */
import { test } from "node:test";
import { seedFiles } from "../support/engine.ts";
import { harmless, HOSTILE } from "./support/hostile-mkv.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

/** A player leaves after this many bytes, or after this time: the files themselves may have no end. */
const PLAYED_BYTES = 64 * 1024 * 1024;
const PLAYED_MS = 600;
/** Longest that a harmless film of 60 MB is played before, ms. */
const WARM_UP_MS = 5000;
/** Files played at once, each as MPEG TS and as HLS. */
const AT_ONCE = 2;

/** Requests `path` of a file, whatever the status, and reads the response; returns its size, bytes. */
async function play(target: Target, path: string, magnet: string, forMs = PLAYED_MS): Promise<number> {
  const signal = AbortSignal.timeout(20_000);
  const query = new URLSearchParams({ magnet, pid: path });
  const answer = await fetch(`${target.url}/engine/${path}?${query}`, { signal });
  const reader = answer.body!.getReader();
  const leave = setTimeout(() => void reader.cancel(), forMs);
  let bytes = 0;
  for (let next = await reader.read(); !next.done && bytes < PLAYED_BYTES; next = await reader.read()) {
    bytes += next.value.length;
  }
  clearTimeout(leave);
  await reader.cancel();
  return bytes;
}

const names = Object.keys(HOSTILE);
for (let first = 0; first < names.length; first += AT_ONCE) {
  const group = names.slice(first, first + AT_ONCE);
  test(`playback delays nobody and stays small when Matroska files have ${group.join(", ")}`, async () => {
    const [film, ...seeders] = await Promise.all(
      [harmless, ...group.map((name) => HOSTILE[name]!)].map((make) =>
        seedFiles([{ path: "film.mkv", bytes: make() }], { pieceLengthBytes: 1 << 20 })
      ),
    );
    try {
      await withTarget(async (target) => {
        // Play something twice at once first: filling the caches is not a cost of the attack.
        await Promise.all(["getstream", "getfile"].map((path) => play(target, path, film!.magnet, WARM_UP_MS)));
        await assertHarmless(target, async () => {
          const played = seeders.flatMap(({ magnet }) =>
            ["getstream", "manifest.m3u8"].map((path) => play(target, path, magnet))
          );
          await Promise.all(played);
        });
      });
    } finally {
      for (const seeder of [film!, ...seeders]) await seeder.close();
    }
  });
}
