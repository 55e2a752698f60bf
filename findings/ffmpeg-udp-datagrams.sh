#!/usr/bin/env bash
# ffmpeg sends MPEG TS by UDP in datagrams of up to 1,472 bytes, which is no multiple of 188: a packet begins in one datagram
# and ends in the next. Needs ffmpeg and node. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >try.mjs <<'JS'
import { spawn } from "node:child_process";
import dgram from "node:dgram";
const socket = dgram.createSocket("udp4");
const sizes = [];
socket.on("message", (data) => sizes.push(data.length));
socket.bind(0, "127.0.0.1", () => {
  const input = ["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=2", "-c:v", "mpeg2video"];
  const options = process.argv[2] ?? "";
  const url = `udp://127.0.0.1:${socket.address().port}${options}`;
  const program = spawn("ffmpeg", ["-nostdin", "-v", "error", ...input, "-f", "mpegts", url], { stdio: "inherit" });
  program.on("exit", () =>
    setTimeout(() => {
      const odd = sizes.filter((size) => size % 188 !== 0).length;
      console.log(`${sizes.length} datagrams, the largest ${Math.max(...sizes)} bytes, ${odd} that are no multiple of 188`);
      process.exit();
    }, 300));
});
JS
ffmpeg -version | sed -n 1p
seen=$(node try.mjs)
echo "ffmpeg -f mpegts udp://…; most expect datagrams of 1,316 bytes, seven packets: $seen"
whole=$(node try.mjs '?pkt_size=1316')
echo "the same with ?pkt_size=1316: $whole"
[[ $seen == *"largest 1472 bytes"* && $seen != *" 0 that are"* && $whole == *" 0 that are"* ]]
