#!/usr/bin/env bash
# Deno's node:dgram: datagrams that a program sends in one turn of its event loop leave in reverse order. Needs npm. Exits
# with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent deno@2.9.6 bun@1.4.5
npm rebuild --silent deno bun >/dev/null
cat >try.mjs <<'JS'
import dgram from "node:dgram";
const [receiver, sender] = [dgram.createSocket("udp4"), dgram.createSocket("udp4")];
const seen = [];
const over = () => {
  console.log(seen.join(" "));
  process.exit();
};
receiver.on("message", (data) => seen.push(String(data)) === 10 && over());
setTimeout(over, 3000);
receiver.bind(0, "127.0.0.1", () => {
  for (let i = 0; i < 10; i++) sender.send(String(i), receiver.address().port, "127.0.0.1");
});
JS
echo "ten datagrams, sent one after the other without waiting; most expect 0 1 2 3 4 5 6 7 8 9"
echo "Node $(node --version): $(node try.mjs)"
echo "Bun $(./node_modules/.bin/bun --version): $(./node_modules/.bin/bun try.mjs)"
seen=$(./node_modules/.bin/deno run -A --no-check try.mjs)
echo "$(./node_modules/.bin/deno --version | sed -n 1p): $seen"
[ "$seen" = "9 8 7 6 5 4 3 2 1 0" ]
