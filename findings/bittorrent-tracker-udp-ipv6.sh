#!/usr/bin/env bash
# bittorrent-tracker's server over UDP: who asks by IPv6 is sent no peer of IPv6, and peers of IPv4 in six bytes each. Needs
# npm and Node 20. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts bittorrent-tracker@11.2.3
cat >try.mjs <<'JS'
import dgram from "node:dgram";
// The package itself also loads WebRTC, whose native part an install script would fetch.
import Server from "./node_modules/bittorrent-tracker/server.js";

const server = new Server({ udp: true, http: false, ws: false, stats: false });
await new Promise((resolve) => server.listen(0, { udp4: "127.0.0.1", udp6: "::1" }, resolve));
const at = { udp4: [server.udp4.address().port, "127.0.0.1"], udp6: [server.udp6.address().port, "::1"] };

/** Announces a peer at `listenPort`; returns the peers that the reply names, as hex. */
async function announce(family, listenPort) {
  const socket = dgram.createSocket(family);
  const ask = (message) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("no reply")), 3000);
      socket.once("message", (reply) => (clearTimeout(timer), resolve(reply)));
      socket.send(message, ...at[family]);
    });
  const connect = Buffer.alloc(16);
  connect.writeBigUInt64BE(0x41727101980n);
  const connected = await ask(connect);
  const message = Buffer.alloc(98);
  connected.copy(message, 0, 8, 16);
  message.writeUInt32BE(1, 8);
  message.fill(7, 16, 36);
  message.write(`-XX0001-${String(listenPort).padStart(12, "0")}`, 36);
  message.writeBigUInt64BE(5n, 64);
  message.writeUInt32BE(2, 80);
  message.writeInt32BE(-1, 92);
  message.writeUInt16BE(listenPort, 96);
  const reply = await ask(message);
  socket.close();
  return reply.toString("hex", 20) || "none";
}

console.log("by IPv6, the first:           ", await announce("udp6", 1111));
const second = await announce("udp6", 2222);
console.log("by IPv6, the second:          ", second);
await announce("udp4", 3333);
const third = await announce("udp6", 4444);
console.log("by IPv6, after one of IPv4:   ", third);
process.exit(second === "none" && third === "7f0000010d05" ? 0 : 1);
JS
echo "bittorrent-tracker $(node -p 'require("./node_modules/bittorrent-tracker/package.json").version'), peers in replies;"
echo "most expect 18 bytes for each peer of IPv6 (BEP 15, as amended): the second would hear of the first"
node try.mjs
