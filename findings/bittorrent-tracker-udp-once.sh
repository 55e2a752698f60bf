#!/usr/bin/env bash
# BEP 15 asks a client of a UDP tracker to send a request again after 15, 30, 60 s …, since datagrams get lost.
# bittorrent-tracker sends it once: one lost datagram costs the announce. Needs node and npm; takes 50 s. Exits with 0 while
# that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts bittorrent-tracker@10.0.12
cat >try.mjs <<'JS'
import dgram from "node:dgram";
import Client from "bittorrent-tracker";
const tracker = dgram.createSocket("udp4");
let requests = 0;
// The first datagram is lost on its way, so to speak: nothing answers.
tracker.on("message", () => requests++);
tracker.bind(0, "127.0.0.1", () => {
  const url = `udp://127.0.0.1:${tracker.address().port}`;
  const client = new Client({ infoHash: "a".repeat(40), peerId: "b".repeat(40), announce: [url], port: 6881 });
  let said = "nothing";
  client.on("warning", ({ message }) => said = message.replace(/udp:\S+/, "udp:…"));
  client.on("error", () => {});
  client.start();
  setTimeout(() => {
    console.log(`bittorrent-tracker 10.0.12: requests in 50 s: ${requests}; most expect 3 (at 0, 15 and 45 s); it says: ${said}`);
    process.exit(requests === 1 ? 0 : 1);
  }, 50_000);
});
JS
node try.mjs
