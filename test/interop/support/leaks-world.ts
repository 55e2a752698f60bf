/** What an engine finds in the network of `leaks.ts`: a seed, a tracker, a web seed and files, all at one public address. */
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
import process from "node:process";
import { toHex } from "../../../src/bytes/hex.ts";
import { compact } from "../../discovery/support/http-tracker.ts";
import { seedNoise } from "../../loopback/support.ts";

const [host = "", output = ""] = process.argv.slice(2);
const seeded = await seedNoise(3_000_000, {
  engine: { peerHost: host, portMapping: false, uploadLimitBytesPerSecond: 700_000 },
});
const port = seeded.engine.peerAddress!.port;
const peers = compact(`${host}:${port}`);
createServer(({ url = "" }, response) => {
  if (url.startsWith("/announce")) {
    response.end(Buffer.concat([Buffer.from("d8:intervali1800e5:peers6:"), peers, Buffer.from("e")]));
  } else if (url === "/noise.torrent") response.end(seeded.transportFile);
  else if (url === "/noise.mkv") response.writeHead(404).end();
  else response.end("#EXTM3U\n#EXTINF:-1,One\nhttp://files.test/one.ts\n");
}).listen(80, host, () => {
  const hash = toHex(new Uint8Array(new Uint8Array(20).map((_, i) => i)));
  writeFileSync(output, JSON.stringify({ infohash: seeded.metainfo.infohashHex, other: hash, port }));
});
setInterval(() => {}, 1000);
