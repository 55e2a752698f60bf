#!/usr/bin/env bash
# A connected UDP socket hears from the kernel when nobody listens at its peer's port (ICMP, ECONNREFUSED). Deno's
# node:dgram says nothing of it. Needs npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent deno@2.9.6 bun@1.4.5
npm rebuild --silent deno bun >/dev/null
cat >try.mjs <<'JS'
import dgram from "node:dgram";
const free = dgram.createSocket("udp4");
free.bind(0, "127.0.0.1", () => {
  const { port } = free.address();
  free.close(() => {
    const socket = dgram.createSocket("udp4");
    const told = [];
    socket.on("error", (error) => told.push(error.code));
    socket.connect(port, "127.0.0.1", () => {
      socket.send("a");
      setTimeout(() => socket.send("b", (error) => error && told.push(error.code)), 100);
      setTimeout(() => {
        console.log(told.length > 0 ? told.join(" ") : "nothing");
        process.exit();
      }, 500);
    });
  });
});
JS
echo "two datagrams to a port where nobody listens; most expect an error event, ECONNREFUSED"
echo "Node $(node --version): $(node try.mjs)"
echo "Bun $(./node_modules/.bin/bun --version): $(./node_modules/.bin/bun try.mjs)"
seen=$(./node_modules/.bin/deno run -A --no-check try.mjs)
echo "$(./node_modules/.bin/deno --version | sed -n 1p): $seen"
[ "$seen" = nothing ]
