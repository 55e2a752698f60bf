#!/usr/bin/env bash
# Deno's node:dgram says that it enlarged the receive buffer of a socket, but the kernel's buffer stays as it was. Needs
# Linux, npm and ss (iproute2). Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent deno@2.9.6
npm rebuild --silent deno >/dev/null
cat >try.mjs <<'JS'
import dgram from "node:dgram";
import { spawnSync } from "node:child_process";
const socket = dgram.createSocket({ type: "udp4" });
socket.bind(0, "127.0.0.1", () => {
  const kernel = () => {
    const { stdout } = spawnSync("ss", ["-uanmH", `sport = :${socket.address().port}`], { encoding: "utf8" });
    return Number(/rb(\d+)/.exec(stdout)[1]);
  };
  const before = kernel();
  socket.setRecvBufferSize(Math.floor(before / 4));
  console.log(JSON.stringify({ before, asked: Math.floor(before / 4), said: socket.getRecvBufferSize(), after: kernel() }));
  socket.close();
});
JS
./node_modules/.bin/deno --version | sed -n 1p
echo "asked for a quarter of the usual size; Linux gives twice what is asked for, so half is expected"
result=$(./node_modules/.bin/deno run -A --no-check try.mjs)
echo "Deno: $result"
command -v node >/dev/null && echo "Node $(node --version): $(node try.mjs)"
read -r before said after < <(sed -E 's/.*"before":([0-9]+).*"said":([0-9]+),"after":([0-9]+).*/\1 \2 \3/' <<<"$result")
((said != before && after == before))
