#!/usr/bin/env bash
# fetch() with a Range asks for it uncompressed (Fetch, "HTTP-network-or-cache fetch"): a piece of a gzip file cannot be
# unpacked. Bun offers gzip all the same. From a server that holds compressed files, as HTTP allows, it then gets bytes of
# one, and its promise rejects. Needs node and npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
cat >try.mjs <<'JS'
import http from "node:http";
import { gzipSync } from "node:zlib";
const plain = Buffer.from("0123456789".repeat(1000));
const packed = gzipSync(plain);
let offered;
const server = http.createServer((request, response) => {
  offered = request.headers["accept-encoding"];
  const isPacked = /gzip/.test(offered);
  const file = isPacked ? packed : plain;
  const headers = { "content-range": `bytes 10-19/${file.length}`, vary: "accept-encoding" };
  response.writeHead(206, isPacked ? { ...headers, "content-encoding": "gzip" } : headers).end(file.subarray(10, 20));
}).listen(0, "127.0.0.1", async () => {
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { range: "bytes=10-19" } })
    .then((response) => response.text()).catch((error) => error.name);
  console.log(`offers ${offered}; gets ${answer}`);
  process.exit();
});
JS
right="offers identity; gets 0123456789"
echo "fetch with range: bytes=10-19; most expect: $right"
node=$(node try.mjs); echo "Node $(node --version): $node"
deno=$(./node_modules/.bin/deno run -A --no-check try.mjs); echo "$(./node_modules/.bin/deno --version | sed -n 1p): $deno"
bun=$(./node_modules/.bin/bun try.mjs 2>/dev/null); echo "Bun $(./node_modules/.bin/bun --version): $bun"
[[ $node == "$right" && $deno == "$right" && $bun == *gzip*"gets "*Error ]]
