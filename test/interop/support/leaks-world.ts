/**
 * What an engine finds in the network of `leaks.ts`, all at one public address: a seed, a tracker, a web seed that never answers,
 * files, lists, a broadcast's tracker, and a peer that names another one. Each kind has a port of its own, so that a packet
 * says what it was for.
 */
import { createServer, type RequestListener } from "node:http";
import net from "node:net";
import { writeFileSync } from "node:fs";
import process from "node:process";
import { toHex } from "../../../src/bytes/hex.ts";
import { createTransportFile } from "../../../src/metainfo/create.ts";
import { createLiveTransportFile } from "../../../src/metainfo/live.ts";
import { compact } from "../../discovery/support/http-tracker.ts";
import { seedNoise } from "../../loopback/support.ts";
import { noise } from "../../support/random.ts";
import { PORTS } from "./leaks-ports.ts";

const [host = "", output = ""] = process.argv.slice(2);
const seeded = await seedNoise(3_000_000, {
  engine: { peerHost: host, portMapping: false, uploadLimitBytesPerSecond: 700_000 },
});
const port = seeded.engine.peerAddress!.port;

const { bytes: webSeeded } = await createTransportFile({
  name: "film.mkv",
  sizeBytes: 12 * 262_144,
  pieceLengthBytes: 262_144,
  pieceHashes: noise(12 * 20, 3),
  webSeeds: [`http://seed.test:${PORTS.webSeed}/`, `http://${host}:${PORTS.webSeed}/`],
});
const { publicKey } = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]) as CryptoKeyPair;
const { bytes: live } = await createLiveTransportFile({
  name: "channel",
  bytesPerS: 100_000,
  publicKey: new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)),
  trackers: [[`http://${host}:${PORTS.liveTracker}/announce`]],
});

const tracker = (peerPort: number): RequestListener => (_, response) => {
  const peers = compact(`${host}:${peerPort}`);
  response.end(Buffer.concat([Buffer.from("d8:intervali1800e5:peers6:"), peers, Buffer.from("e")]));
};
const files: Readonly<Record<string, Uint8Array>> = {
  "/noise.torrent": seeded.transportFile,
  "/film.torrent": webSeeded,
  "/live.torrent": live,
};
const SERVED: readonly (readonly [port: number, listener: RequestListener])[] = [
  [PORTS.tracker, tracker(port)],
  [PORTS.liveTracker, tracker(PORTS.livePeer)],
  // Never answers.
  [PORTS.webSeed, () => {}],
  [PORTS.files, ({ url = "" }, response) => void response.end(files[url.split("?")[0]!])],
  [PORTS.lists, (_, response) => void response.end("#EXTM3U\n#EXTINF:-1,One\nhttp://files.test/one.ts\n")],
  [PORTS.channel, (_, response) => void response.end("no stream")],
];
for (const [at, listener] of SERVED) {
  await new Promise<void>((resolve) => createServer(listener).listen(at, host, resolve));
}

/** Has nothing, and names another peer. */
const teller = net.createServer((socket) => {
  const message = (id: number, payload: Uint8Array) => {
    const head = Buffer.alloc(6);
    head.writeUInt32BE(2 + payload.length);
    head.set([20, id], 4);
    socket.write(Buffer.concat([head, payload]));
  };
  let got = Buffer.alloc(0);
  let isGreeted = false;
  let isTold = false;
  socket.on("error", () => {});
  socket.on("data", (chunk: Uint8Array) => {
    got = Buffer.concat([got, chunk]);
    if (!isGreeted && got.length >= 68) {
      isGreeted = true;
      const reserved = Buffer.from([0, 0, 0, 0, 0, 0x10, 0, 0]);
      socket.write(
        Buffer.concat([got.subarray(0, 20), reserved, got.subarray(28, 48), Buffer.from("-XX0001-abcdefghijkl")]),
      );
      message(0, Buffer.from("d1:md6:ut_pexi1eee"));
    }
    const id = /6:ut_pexi(\d+)e/.exec(got.toString("latin1"))?.[1];
    if (isTold || id === undefined) return;
    isTold = true;
    const added = compact(`${host}:${PORTS.pexPeer}`);
    message(Number(id), Buffer.concat([Buffer.from("d5:added6:"), added, Buffer.from("7:added.f1:\0e")]));
  });
});
await new Promise<void>((resolve) => teller.listen(PORTS.teller, host, resolve));

const hash = toHex(new Uint8Array(new Uint8Array(20).map((_, i) => i)));
writeFileSync(output, JSON.stringify({ infohash: seeded.metainfo.infohashHex, other: hash, port }));
setInterval(() => {}, 1000);
