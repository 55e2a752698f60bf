import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { toHex } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import { contentId, recordId, transportRecordOf } from "../../src/metainfo/content-id.ts";
import {
  createLiveTransportFile,
  isLive,
  magnetLink,
  parseAnyInfo,
  parseAnyTransportFile,
  parseLiveInfo,
  parseLiveTransportFile,
} from "../../src/metainfo/live.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { seeded } from "./support.ts";

const KEY = new Uint8Array(32).map((_, i) => i);
const LIVE = { alg: "ed25519", br: 125_000, bs: 16384, k: KEY, sub: 8, t: "mpegts", v: 1, w: 60 };

function infoWith(live: Record<string, unknown> = {}, info: Record<string, unknown> = {}): Uint8Array {
  return encodeBencode({ live: { ...LIVE, ...live }, name: "News", "piece length": 65536, ...info });
}

test("createLiveTransportFile() makes a file that parseLiveTransportFile() reads", async () => {
  const trackers = [["http://t.test/announce"], ["udp://u.test:1"]];
  const nodes = ["10.0.0.1:6881"];
  const made = await createLiveTransportFile({ name: "News", publicKey: KEY, bytesPerS: 125_000, trackers, nodes });
  assert(isLive(await parseAnyTransportFile(made.bytes)));
  const read = await parseLiveTransportFile(made.bytes);
  assertEquals(read, made.metainfo);
  assertEquals(
    [read.name, read.bytesPerS, read.pieceLengthBytes, read.substreams, read.windowS, read.isPrivate],
    ["News", 125_000, 65536, 8, 60, false],
  );
  assertEquals(read.publicKey, KEY);
  assertEquals([read.trackers, read.nodes], [trackers, nodes]);
  assertEquals(read.infoBytes, infoWith());
});

test("the ids of a broadcast are those of its info and its transport record", async () => {
  const { metainfo } = await createLiveTransportFile({ name: "News", publicKey: KEY, bytesPerS: 125_000 });
  const sha1 = new Uint8Array(await crypto.subtle.digest("SHA-1", infoWith() as Uint8Array<ArrayBuffer>));
  assertEquals(metainfo.infohashHex, toHex(sha1));
  assertEquals(await contentId(metainfo), await recordId(transportRecordOf(metainfo)));
  assert(/^[0-9a-f]{40}$/.test(await contentId(metainfo)));
});

test("magnetLink() names infohash, title and trackers", async () => {
  const trackers = [["http://t.test/a?b=c&d"]];
  const { metainfo } = await createLiveTransportFile({ name: "A & B", publicKey: KEY, bytesPerS: 1, trackers });
  const magnet = parseMagnet(magnetLink(metainfo));
  assertEquals([magnet.infohashHex, magnet.name, magnet.trackers], [metainfo.infohashHex, "A & B", trackers[0]]);
});

test("createLiveTransportFile() marks private broadcasts", async () => {
  const contents = { name: "P", publicKey: KEY, bytesPerS: 1, isPrivate: true };
  assert((await createLiveTransportFile(contents)).metainfo.isPrivate);
});

test("parseLiveInfo() makes the name harmless", async () => {
  assertEquals((await parseLiveInfo(infoWith({}, { name: "../x" }))).name, "x");
});

test("parseLiveInfo() throws bad_transport_file when a field is missing or out of range", async () => {
  const cases: [string, Uint8Array][] = [
    ["info.live is missing", encodeBencode({ name: "x", "piece length": 65536 })],
    ["info is not a dictionary", encodeBencode([1])],
    ["version", infoWith({ v: 2 })],
    ["algorithm", infoWith({ alg: "rsa" })],
    ["media type", infoWith({ t: "mp4" })],
    ["blocks", infoWith({ bs: 8192 })],
    ["not a key", infoWith({ k: KEY.subarray(1) })],
    ["not a key", infoWith({ k: 5 })],
    ["info.live.br", infoWith({ br: 0 })],
    ["info.live.br", infoWith({ br: 12_500_001 })],
    ["info.live.sub", infoWith({ sub: 9 })],
    ["info.live.sub", infoWith({ sub: 0 })],
    ["info.live.w", infoWith({ w: 9 })],
    ["info.live.w", infoWith({ w: 7201 })],
    ["piece length", infoWith({}, { "piece length": 1000 })],
    ["piece length", infoWith({}, { "piece length": 65537 })],
    ["piece length", infoWith({}, { "piece length": 1024 * 1024 + 16384 })],
    ["info.name", infoWith({}, { name: 4 })],
    ["longer than 1000", infoWith({}, { name: "x".repeat(760), pad: new Uint8Array(300) })],
  ];
  for (const [message, bytes] of cases) {
    const error = await assertRejects(() => parseLiveInfo(bytes), MillraceError, message);
    assertEquals(error.code, "bad_transport_file");
  }
});

test("parseTransportFile() and parseLiveTransportFile() refuse each other's files", async () => {
  const live = encodeBencode({ info: { live: LIVE, name: "x", "piece length": 65536 } });
  await assertRejects(() => parseTransportFile(live), MillraceError, "live broadcast");
  const vod = encodeBencode({ info: { length: 5, name: "x", "piece length": 16384, pieces: new Uint8Array(20) } });
  await assertRejects(() => parseLiveTransportFile(vod), MillraceError, "info.live is missing");
});

test("parseAnyInfo() distinguishes the metadata of a broadcast from that of a torrent", async () => {
  const live = await parseAnyInfo(encodeBencode({ live: LIVE, name: "x", "piece length": 65536 }));
  assert(isLive(live));
  const vod = await parseAnyInfo(
    encodeBencode({ length: 5, name: "x", "piece length": 16384, pieces: new Uint8Array(20) }),
    { trackers: [["http://a.example/announce"]] },
  );
  assert(!isLive(vod));
  assertEquals([vod.totalBytes, vod.trackers.length], [5, 1]);
  for (const bytes of [encodeBencode(["live"]), encodeBencode({ live: 5 }), new Uint8Array()]) {
    await assertRejects(() => parseAnyInfo(bytes), MillraceError);
  }
});

test("parseLiveTransportFile() survives damage", async () => {
  const random = seeded(4);
  const { bytes } = await createLiveTransportFile({ name: "News", publicKey: KEY, bytesPerS: 125_000 });
  for (let round = 0; round < 1500; round++) {
    const damaged = bytes.slice(0, random() < 0.3 ? Math.floor(random() * bytes.length) : bytes.length);
    for (let i = 0; i < 3; i++) damaged[Math.floor(random() * damaged.length)] = Math.floor(random() * 256);
    try {
      await parseLiveTransportFile(damaged);
    } catch (error) {
      assert(error instanceof MillraceError, String(error));
    }
  }
});
