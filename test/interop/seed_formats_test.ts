/** `seed --format`: libtorrent accepts what it makes, knows it by the same names, and fetches it from the command. */
import { test } from "node:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assertEquals } from "@std/assert";
import type { SeedLine } from "../../platform/seed.ts";
import { secondName } from "../../src/metainfo/hash-trees.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { start } from "../support/process.ts";
import { noise } from "../support/random.ts";
import { libtorrent } from "./peers/clients.ts";
import { assertFetched, contentOf } from "./peers/content.ts";

const MAIN = fileURLToPath(new URL("../../platform/deno/main.ts", import.meta.url));
const PEER_PY = fileURLToPath(new URL("./peers/libtorrent_peer.py", import.meta.url));

/** Longest that the command may hash, ms. */
const READY_MS = 30_000;

const FILES = { "film.mp4": 700_001, "sub/фильм 🎬.srt": 16_384, "sub/a.txt": 20_000, "z.nfo": 9 };

for (const format of ["v1", "hybrid", "v2"] as const) {
  test(`libtorrent reads and fetches what "seed --format ${format}" makes of a folder`, async () => {
    const { path: directory, remove } = await temporaryDirectory();
    const files = Object.entries(FILES).map(([path, size], index) => ({ path, bytes: noise(size, index + 1) }));
    await mkdir(join(directory, "pack", "sub"), { recursive: true });
    for (const { path, bytes } of files) await writeFile(join(directory, "pack", path), bytes);
    const torrentPath = join(directory, "pack.torrent");
    const seeder = start(Deno.execPath(), [
      ...["run", "-A", "--no-check", MAIN, "seed", "--file", join(directory, "pack"), "--format", format],
      ...["--transport-file", torrentPath, "--peer-host", "127.0.0.1", "--peer-port", "0"],
    ]);
    try {
      const [text] = await seeder.line(/^\{.*\}$/, READY_MS);
      const seed = JSON.parse(text!) as SeedLine;
      const content = await contentOf(directory, files, torrentPath);
      const { metainfo } = content;
      assertEquals(await namesOf(torrentPath), {
        v1: format === "v2" ? "" : metainfo.infohashHex,
        v2: format === "v1" ? "" : secondName(metainfo) ?? metainfo.infohashHex,
        files: metainfo.files.filter(({ padding }) => !padding).map(({ index, path }) => `${index} pack/${path}`),
      });
      assertEquals(seed.infohash, metainfo.infohashHex);
      for (const magnet of [undefined, seed.magnet]) {
        const fetcher = await libtorrent(content, { mode: "fetch", peers: [seed.peer], ...magnet && { magnet } });
        try {
          await fetcher.done();
          await assertFetched(content, fetcher.directory);
        } finally {
          await fetcher.stop();
        }
      }
    } finally {
      await seeder.stop();
      await remove();
    }
  });
}

/** What libtorrent makes of a transport file. */
async function namesOf(torrentPath: string): Promise<{ v1: string; v2: string; files: string[] }> {
  const program = start("/usr/bin/python3", [PEER_PY, "names", torrentPath]);
  try {
    const [, text] = await program.line(/^NAMES (.*)$/, READY_MS);
    return JSON.parse(text!);
  } finally {
    await program.stop();
  }
}
