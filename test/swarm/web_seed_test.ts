import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { percentEncoded } from "../../src/bytes/percent.ts";
import type { Logger } from "../../src/ports.ts";
import { serveWeb } from "../support/web.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { hurried, Lab, soon } from "./support/lab.ts";
import { type Handle, mirror, rangeOf, sendRange, withMirrors } from "./support/mirrors.ts";
import { makeTorrent } from "./support/torrent.ts";

test("WebSeed sends the password of its URL as a field, asks for uncompressed bytes, and keeps it out of the log", async () => {
  const torrent = await makeTorrent({ bytes: 300_000 });
  let asked = 0;
  const handle: Handle = (request, response) => {
    if (asked++ === 0) return response.writeHead(500).end();
    if (request.headers.authorization !== `Basic ${btoa("us:p@w")}`) return response.writeHead(401).end();
    sendRange(torrent.data, request, response);
  };
  await withMirrors(torrent, [handle], async ({ webs, read, log }) => {
    assertEquals(await read(0, 0, 300_000), torrent.data);
    // Node's own fetch says it as well.
    for (const { headers } of webs[0]!.asked) {
      assertMatch(String(headers["accept-encoding"]), /^identity(, identity)?$/);
    }
    const told = log.filter((line) => line.includes("web seed failed"));
    assertEquals([told.length, told.join().includes("p%40w")], [1, false]);
  }, { user: "us:p%40w@", path: "noise", hurry: 4 });
});

test("WebSeed delivers the other files when the server lacks one", async () => {
  const torrent = await makeTorrent({ bytes: 2_005_000, files: [1_000_000, 5000, 1_000_000] });
  await withMirrors(torrent, [mirror(torrent, { 1: null })], async ({ webs, read }) => {
    const { pieceLengthBytes } = torrent.metainfo;
    // The piece at its end holds the missing file, too.
    const whole = Math.floor(1_000_000 / pieceLengthBytes) * pieceLengthBytes;
    assertEquals(await read(0, 0, whole), torrent.data.slice(0, whole));
    assertEquals(await read(2, 500_000, 500_000), torrent.data.slice(1_505_000));
    const missing = webs[0]!.asked.filter(({ url }) => url!.includes("file%201")).length;
    assert(missing <= 1, `the missing file was asked for ${missing} times`);
  });
});

test("WebSeed delivers the other files when the server has another version of one", async () => {
  for (const files of [[1_000_000, 5000, 1_000_000], [983_040, 65_536, 956_424]]) {
    const torrent = await makeTorrent({ bytes: 2_005_000, files });
    const handle = mirror(torrent, { 1: new Uint8Array(70_000) });
    await withMirrors(torrent, [handle], async ({ read, log }) => {
      const { pieceLengthBytes } = torrent.metainfo;
      const whole = Math.floor(files[0]! / pieceLengthBytes) * pieceLengthBytes;
      assertEquals(await read(0, 0, whole), torrent.data.slice(0, whole));
      assertEquals(await read(2, 500_000, files[2]! - 500_000), torrent.data.slice(2_005_000 - files[2]! + 500_000));
      assert(log.filter((line) => line.includes("corrupt")).length <= 1);
    });
  }
});

test("WebSeed uses a server that sends whole files only, from their beginning", async () => {
  const torrent = await makeTorrent({ bytes: 3_000_000, files: [2_000_000, 1_000_000] });
  const handle: Handle = (request, response) => {
    const whole = mirror(torrent);
    const at = request.url!.includes("file%200") ? [0, 2_000_000] : [2_000_000, 3_000_000];
    request.headers.range = `bytes=0-${at[1]! - at[0]! - 1}`;
    const send = response.writeHead.bind(response);
    response.writeHead = ((_status: number) => send(200, { "content-length": at[1]! - at[0]! })) as never;
    whole(request, response);
  };
  await withMirrors(torrent, [handle], async ({ webs, read }) => {
    assertEquals(await read(0, 0, 500_000), torrent.data.slice(0, 500_000));
    assertEquals(await read(0, 1_500_000, 500_000), torrent.data.slice(1_500_000, 2_000_000));
    assertEquals(await read(1, 900_000, 100_000), torrent.data.slice(2_900_000));
    // One response for each file, but for read-ahead that met a seek.
    assert(webs[0]!.asked.length <= 4, `${webs[0]!.asked.length} requests`);
  });
});

test("WebSeed uses a server that sends more than was asked for, before and after", async () => {
  const torrent = await makeTorrent({ bytes: 2_000_000 });
  const handle: Handle = (request, response) => {
    const [from, to] = rangeOf(request);
    const wide = [from - from % 10_000, Math.min(to + 5000, 1_999_999)];
    request.headers.range = `bytes=${wide[0]}-${wide[1]}`;
    sendRange(torrent.data, request, response);
  };
  await withMirrors(torrent, [handle], async ({ read }) => {
    assertEquals(await read(0, 0, 2_000_000), torrent.data);
  }, { path: "noise" });
});

test("WebSeed continues where a server cut a response", async () => {
  const torrent = await makeTorrent({ bytes: 2_000_000 });
  const handle: Handle = (request, response) => {
    const [from, to] = rangeOf(request);
    response.writeHead(206, { "content-range": `bytes ${from}-${to}/2000000`, "content-length": to + 1 - from });
    const end = Math.min(to + 1, from + 300_000);
    response.write(torrent.data.subarray(from, end), () => end < to + 1 ? response.destroy() : response.end());
  };
  await withMirrors(torrent, [handle], async ({ read, log }) => {
    assertEquals(await read(0, 0, 2_000_000), torrent.data);
    assertEquals(log.filter((line) => line.includes("web seed failed")), []);
  }, { path: "noise" });
});

test("WebSeed does not ask a busy server again before the time that it names", async () => {
  const torrent = await makeTorrent({ bytes: 300_000 });
  const times: number[] = [];
  const handle: Handle = (request, response) => {
    times.push(performance.now());
    if (times.length === 1) response.writeHead(503, { "retry-after": "8" }).end();
    else sendRange(torrent.data, request, response);
  };
  await withMirrors(torrent, [handle], async ({ read }) => {
    assertEquals(await read(0, 0, 300_000), torrent.data);
    // The engine's clock runs 20 times as fast.
    assert((times[1]! - times[0]!) * 20 >= 8000 - 20, `again after ${(times[1]! - times[0]!) * 20} ms`);
  }, { path: "noise", hurry: 20 });
});

test("WebSeed asks a busy server for more at once, not more often", async () => {
  const torrent = await makeTorrent({ bytes: 6_000_000 });
  let asked = 0;
  const handle: Handle = (request, response) => {
    if (++asked % 2 === 0) response.writeHead(429, { "retry-after": "1" }).end();
    else sendRange(torrent.data, request, response);
  };
  await withMirrors(torrent, [handle], async ({ read }) => {
    assertEquals(await read(0, 0, 6_000_000), torrent.data);
    assert(asked < 30, `${asked} requests`);
  }, { path: "noise", hurry: 10 });
});

test("WebSeeds reads no more while what arrived waits to be hashed", async () => {
  const torrent = await makeTorrent({ bytes: 24_000_000, pieceLength: 262_144 });
  const web = await serveWeb((request, response) => sendRange(torrent.data, request, response));
  await Lab.run(async (lab) => {
    const { clock } = lab.ports;
    let waitingBytes = 0;
    let mostBytes = 0;
    let last: Promise<unknown> = Promise.resolve();
    /** One piece after another, 5 ms each. */
    const sha1 = async (data: Uint8Array) => {
      mostBytes = Math.max(mostBytes, waitingBytes += data.length);
      last = last.then(() => new Promise<void>((resolve) => void clock.setTimeout(resolve, 5)));
      await last;
      waitingBytes -= data.length;
      return await lab.ports.sha1(data);
    };
    const node = await lab.node({ ports: { ...lab.ports, sha1 } });
    const { swarm } = node.join({ metainfo: { ...torrent.metainfo, webSeeds: [`${web.base}/noise`] } });
    await swarm.metadata(soon());
    const bytes = await swarm.openReader(0).read(0, 24_000_000, { signal: soon(60_000) });
    assertEquals(bytes.length, 24_000_000);
    assert(mostBytes < 12 * 1024 * 1024, `${mostBytes} bytes waited`);
  }).finally(() => web.close());
});

test("WebSeeds tries all that a torrent names when the first are of no use", async () => {
  const torrent = await makeTorrent({ bytes: 300_000 });
  const gone: Handle = (_request, response) => response.writeHead(404).end();
  const silent: Handle = () => {};
  const good: Handle = (request, response) => sendRange(torrent.data, request, response);
  const dead = Array.from({ length: 5 }, (_, i) => `http://127.0.0.1:1/${i}`);
  const page: Handle = (_request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>gone");
  const handles = [gone, gone, gone, gone, gone, silent, silent, silent, silent, silent, page, good];
  await withMirrors(torrent, handles, async ({ webs, read }) => {
    assertEquals(await read(0, 0, 300_000), torrent.data);
    assert(webs[0]!.asked.length <= 1);
  }, { path: "noise", more: dead, hurry: 4 });
});

test("WebSeed asks a server of BEP 17 for parts of pieces, and waits as long as it says", async () => {
  const torrent = await makeTorrent({ bytes: 500_000, files: [100_001, 399_999] });
  const { metainfo } = torrent;
  const times: number[] = [];
  const web = await serveWeb((request, response) => {
    times.push(performance.now());
    const asked = new URLSearchParams(request.url!.slice(request.url!.indexOf("?")));
    if (times.length === 1) return response.writeHead(503).end("8");
    assertEquals(request.url!.startsWith(`/seed?key=1&info_hash=${percentEncoded(metainfo.infohash)}&`), true);
    const piece = torrent.piece(Number(asked.get("piece")));
    const [from, to] = (asked.get("ranges") ?? `0-${piece.length - 1}`).split("-").map(Number);
    response.end(piece.subarray(from, to! + 1));
  });
  await Lab.run(async (lab) => {
    const node = await lab.node({ ports: hurried(lab.ports, 20) });
    const { swarm } = node.join({ metainfo: { ...metainfo, httpSeeds: [`${web.base}/seed?key=1`] } });
    await swarm.metadata(soon());
    assertEquals(await swarm.openReader(1).read(50_000, 349_999, { signal: soon() }), torrent.data.slice(150_001));
    // The engine's clock runs 20 times as fast.
    assert((times[1]! - times[0]!) * 20 >= 8000 - 20, `again after ${(times[1]! - times[0]!) * 20} ms`);
  }).finally(() => web.close());
});

test("WebSeeds asks one that a foreign caller could not reach at once when the user starts the same torrent", async () => {
  const torrent = await makeTorrent({ bytes: 100_000 });
  const web = await serveWeb((request, response) => sendRange(torrent.data, request, response));
  const metainfo = { ...torrent.metainfo, webSeeds: [`${web.base}/noise`] };
  const clock = new FakeClock();
  let refusals = 0;
  const log: Logger = {
    log: (_level, message) => void (refusals += Number(message === "web seed failed")),
    child: () => log,
  };
  await Lab.run(async (lab) => {
    const node = await lab.node({ ports: { ...lab.ports, clock, log } });
    const guest = node.join({ metainfo, servers: "public" });
    await guest.swarm.metadata(soon());
    const read = guest.swarm.openReader(0).read(0, 100_000, { signal: soon() });
    await until("it was refused several times", async () => {
      await clock.advanceAsync(1000);
      return refusals >= 4;
    });
    assertEquals(web.asked.length, 0);
    node.join({ metainfo });
    let bytes: Uint8Array | null = null;
    read.then((all) => bytes = all, () => {});
    const startMs = clock.monotonic();
    await until("it was read", async () => {
      await clock.advanceAsync(1);
      return bytes !== null;
    });
    assertEquals(bytes, torrent.data);
    assert(clock.monotonic() - startMs < 2000, `${clock.monotonic() - startMs} ms`);
  }).finally(() => web.close());
});
