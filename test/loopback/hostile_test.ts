/** Hostile peers, metadata and web seeds: playback continues, or fails with a reason. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { before, test } from "node:test";
import { assert, assertEquals, assertLess, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import type { Ports } from "../../src/ports.ts";
import type { TorrentSwarmManager } from "../../src/swarm/manager.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { badPeer, honest } from "../swarm/support/bad-peer.ts";
import { makeTorrent, type TestTorrent } from "../swarm/support/torrent.ts";
import { noise } from "../support/random.ts";
import { ask, assertSameBytes, bytesOf, magnetOf, MIB, startSession } from "./support.ts";
import { ownMs } from "../support/held-up.ts";

let ports: Ports;
let torrent: TestTorrent;
before(async () => {
  ports = await loadPorts();
  torrent = await makeTorrent({ bytes: 6 * MIB });
});

test("a peer that corrupts blocks is banned while playback completes", async () => {
  const liar = await badPeer(ports, torrent, (request, answer) => {
    const bytes = honest(torrent, request);
    if (request.piece % 3 === 0) bytes.fill(0x55, 100, 200);
    answer(bytes);
  }, { host: "127.0.0.2" });
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  const served = await serveEngine();
  try {
    const started = await startSession(served, "getfile", {
      magnet: magnetOf(torrent.metainfo, liar.address, good.address),
      _idx: "0",
    });
    assertSameBytes(await bytesOf(started.playback_url), torrent.data);
    await until("the liar is banned", () => (served.engine.swarms as TorrentSwarmManager).banned("127.0.0.2"));
    assert(!(served.engine.swarms as TorrentSwarmManager).banned("127.0.0.1"));
    assertLess(served.engine.swarms.list()[0]!.status().wastedBytes, 6 * MIB);
  } finally {
    await Promise.all([served.close(), liar.close(), good.close()]);
  }
});

test("peers that answer slowly or not at all delay nothing beside a good one", async () => {
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const slow = await badPeer(ports, torrent, (request, answer) => {
    timers.add(setTimeout(() => answer(honest(torrent, request)), 2_500));
  }, { host: "127.0.0.3" });
  const mute = await badPeer(ports, torrent, () => {}, { host: "127.0.0.4" });
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  const served = await serveEngine();
  try {
    const tookMs = await ownMs(async () => {
      const started = await startSession(served, "getfile", {
        magnet: magnetOf(torrent.metainfo, slow.address, mute.address, good.address),
        _idx: "0",
      });
      assertSameBytes(await bytesOf(started.playback_url), torrent.data);
    });
    assertLess(tookMs, 5_000);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    await Promise.all([served.close(), slow.close(), mute.close(), good.close()]);
  }
});

/** So long that no start ends by it, even on a busy machine. */
const START_TIMEOUT_MS = 30_000;

/** Plays what a peer describes by `fields`; `body` gets the response to the start. */
async function described(
  fields: Record<string, unknown>,
  body: (started: Awaited<ReturnType<typeof ask>>, served: ServedEngine) => void,
): Promise<void> {
  const info = { name: "x.mkv", "piece length": 65_536, pieces: noise(20), ...fields };
  const infoBytes = encodeBencode(info as never);
  const infohash = new Uint8Array(await crypto.subtle.digest("SHA-1", infoBytes as Uint8Array<ArrayBuffer>));
  const infohashHex = Array.from(infohash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const fake: TestTorrent = { ...torrent, metainfo: { ...torrent.metainfo, infoBytes, infohash, infohashHex } };
  const peer = await badPeer(ports, fake, () => {});
  const served = await serveEngine({ startTimeoutMs: START_TIMEOUT_MS });
  try {
    body(await ask(served, "getfile", { magnet: magnetOf({ infohashHex }, peer.address) }), served);
  } finally {
    await Promise.all([served.close(), peer.close()]);
  }
}

for (
  const [what, fields] of [
    ["too few hashes", { length: 10 * MIB }],
    ["a negative length", { length: -1 }],
  ] as const
) {
  test(`metadata with ${what} from peers fails the start at once`, async () => {
    const tookMs = await ownMs(() =>
      described(fields, ({ response, error }) => {
        assertEquals(response, null, "refused");
        assert(!/start timeout/.test(String(error)), String(error));
        assertMatch(String(error), /piece|length|hash|transport file/);
      })
    );
    assertLess(tookMs, 5_000);
  });
}

for (
  const [path, harmless] of [[["..", "..", "evil.mkv"], "evil.mkv"], [["/etc/passwd.mkv"], "etc_passwd.mkv"]] as const
) {
  test(`metadata with the path ${path.join(" / ")} from peers is made harmless`, async () => {
    await described({ files: [{ length: 65_536, path }] }, ({ response, error }, served) => {
      assertEquals(error, null);
      assertEquals(new URL(response!.playback_url).pathname.split("/").at(-1), harmless);
      assertEquals(served.engine.swarms.list()[0]!.metainfo!.files.map((file) => file.path), [harmless]);
    });
  });
}

test("a web seed that lies is dropped and playback completes from peers", async () => {
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "");
    const from = Number(range?.[1] ?? 0), to = Number(range?.[2] ?? torrent.data.length - 1);
    response.writeHead(206, {
      "content-length": to - from + 1,
      "content-range": `bytes ${from}-${to}/${torrent.data.length}`,
    });
    response.end(new Uint8Array(to - from + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  const served = await serveEngine();
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/file.mkv`;
    const started = await startSession(served, "getfile", {
      magnet: `${magnetOf(torrent.metainfo, good.address)}&ws=${encodeURIComponent(url)}`,
      _idx: "0",
    });
    assertSameBytes(await bytesOf(started.playback_url), torrent.data);
    assertLess(asked, 20);
    assert(!(served.engine.swarms as TorrentSwarmManager).banned("127.0.0.1"), "peers of that host are not to blame");
  } finally {
    await Promise.all([served.close(), good.close()]);
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});
