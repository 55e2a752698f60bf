#!/usr/bin/env bash
# A gzip file may have several members (RFC 1952, 2.2), as "cat a.gz b.gz" and programs that compress in parallel make. What
# reads one differs: DecompressionStream rejects on Node and Deno, and fetch() of Deno ends after the first member without a
# word. Needs node and npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
cat >try.mjs <<'JS'
import http from "node:http";
import { gunzipSync, gzipSync } from "node:zlib";
const packed = Buffer.concat([gzipSync("first "), gzipSync("second")]);
const readable = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const streamed = await new Response(readable).text().catch((error) => error.name);
const server = http.createServer((_, response) => {
  response.writeHead(200, { "content-encoding": "gzip" }).end(packed);
}).listen(0, "127.0.0.1", async () => {
  const fetched = await (await fetch(`http://127.0.0.1:${server.address().port}/`)).text();
  console.log(`stream: ${streamed}, fetch: ${fetched}, zlib: ${gunzipSync(packed)}`);
  process.exit();
});
JS
right="stream: first second, fetch: first second, zlib: first second"
echo "two members, 'first ' and 'second'; most expect: $right"
node=$(node try.mjs); echo "Node $(node --version): $node"
deno=$(./node_modules/.bin/deno run -A --no-check try.mjs); echo "$(./node_modules/.bin/deno --version | sed -n 1p): $deno"
bun=$(./node_modules/.bin/bun try.mjs); echo "Bun $(./node_modules/.bin/bun --version): $bun"
[[ $bun == "$right" && $node == "stream: TypeError, fetch: first second, zlib: first second" ]] &&
  [[ $deno == "stream: TypeError, fetch: first , zlib: first second" ]]
