#!/usr/bin/env bash
# Deno's node:fs: a vectored write first joins its parts into a new buffer, so it costs more than single writes. Needs npm.
# Exits with 0 while it costs at least twice as much, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent deno@2.9.6 node@24.21.0
npm rebuild --silent deno node >/dev/null
cat >try.mjs <<'JS'
import fs from "node:fs";
import process from "node:process";
const part = new Uint8Array(256 * 1024);
const file = fs.openSync("out", "w");
// 256 MiB over the same 512 KiB of the file, in pairs of parts.
const joint = () => fs.writevSync(file, [part, part], 0);
const single = () => {
  fs.writeSync(file, part, 0, part.length, 0);
  fs.writeSync(file, part, 0, part.length, part.length);
};
const cost = (write) => {
  const before = process.cpuUsage();
  for (let i = 0; i < 512; i++) write();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
};
const middle = (write) => Array.from({ length: 5 }, () => cost(write)).sort((a, b) => a - b)[2];
cost(single);
console.log(middle(single).toFixed(0), middle(joint).toFixed(0));
JS
echo "processor time of 256 MiB, ms: two writes of 256 KiB, then one vectored write of both; most expect no more for the second"
echo "Node $(./node_modules/.bin/node --version): $(./node_modules/.bin/node try.mjs)"
seen=$(./node_modules/.bin/deno run -A --no-check try.mjs)
echo "$(./node_modules/.bin/deno --version | sed -n 1p): $seen"
read -r single joint <<<"$seen"
((joint >= 2 * single))
