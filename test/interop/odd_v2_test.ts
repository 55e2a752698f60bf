/** Odd torrents of version 2 that libtorrent makes and seeds: by transport file, without its piece layers, by magnet. */
import { test } from "node:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine } from "../../src/engine.ts";
import { secondName } from "../../src/metainfo/hash-trees.ts";
import { magnetLink } from "../../src/metainfo/live.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { encodeMetainfo, parseTransportFile } from "../../src/metainfo/transport-file.ts";
import type { Metainfo } from "../../src/metainfo/types.ts";
import type { Swarm, SwarmTarget } from "../../src/swarm/types.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { start } from "../support/process.ts";
import { assertSame } from "./peers/content.ts";

const ODD_PY = fileURLToPath(new URL("./peers/odd_v2.py", import.meta.url));

/** Longest that making all torrents, or fetching one, may take, ms. */
const TIMEOUT_MS = 60_000;

/** What is known of a torrent, by the way it is named; the link names the peer, too. */
const WAYS: Record<string, (metainfo: Metainfo, link: string) => SwarmTarget | Promise<SwarmTarget>> = {
  "by transport file": (metainfo, link) => ({ metainfo, magnet: parseMagnet(link) }),
  "without its piece layers": async (metainfo, link) => ({
    metainfo: await parseTransportFile(encodeMetainfo({ ...metainfo, trees: [] })),
    magnet: parseMagnet(link),
  }),
  "with wrong piece layers": async (metainfo, link) => {
    const trees = metainfo.trees!.map(({ root, layer }) => ({ root, layer: layer && layer.map((byte) => byte ^ 1) }));
    return {
      metainfo: await parseTransportFile(encodeMetainfo({ ...metainfo, trees })),
      magnet: parseMagnet(link),
    };
  },
  "by the magnet of version 2": (_, link) => ({ magnet: parseMagnet(link.replace(/xt=urn:btih:\w+&/, "")) }),
};

test("twenty-one odd torrents of version 2 that libtorrent seeds are read whole, however they are named", async () => {
  const { path: root, remove } = await temporaryDirectory();
  const program = start("/usr/bin/python3", [ODD_PY, root]);
  try {
    const [, port] = await program.line(/^READY (\d+)$/, TIMEOUT_MS);
    const files = (await readdir(root)).filter((name) => name.endsWith(".torrent"));
    assertEquals(files.length, 21);
    for (const [way, targetOf] of Object.entries(WAYS)) {
      const engine = await createEngine(await loadPorts(), {
        peerHost: "127.0.0.1",
        peerPort: 0,
        dht: false,
        lsd: false,
      });
      try {
        for (const file of files) {
          const metainfo = await parseTransportFile(new Uint8Array(await readFile(join(root, file))));
          // libtorrent sends nobody the metadata of a private torrent.
          if (metainfo.isPrivate && way.includes("magnet")) continue;
          const link = `${magnetLink(metainfo)}&x.pe=127.0.0.1:${port}`;
          const lease = engine.swarms.acquire(await targetOf(metainfo, link));
          await readWhole(lease.swarm, metainfo, root, `${file} ${way}`);
          lease.release({ atOnce: true });
        }
      } finally {
        await engine.close();
      }
    }
  } finally {
    await program.stop();
    await remove();
  }
});

async function readWhole(swarm: Swarm, metainfo: Metainfo, root: string, what: string): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await swarm.metadata(signal);
  swarm.setDownloadAll(true);
  await swarm.completed(signal);
  const found = swarm.metainfo!;
  assertEquals([found.infohashHex, secondName(found)], [metainfo.infohashHex, secondName(metainfo)], what);
  assertEquals(found.files, metainfo.files, what);
  for (const file of found.files.filter(({ padding, sizeBytes }) => !padding && sizeBytes > 0)) {
    const place = join(root, ...(found.multiFile ? [found.name] : []), ...file.path.split("/"));
    const bytes = await swarm.openReader(file.index).read(0, file.sizeBytes, { signal });
    assertSame(bytes, new Uint8Array(await readFile(place)), `${what}: ${file.path}`);
  }
  assert(swarm.status().failedPieces === 0, `${what}: pieces failed`);
}
