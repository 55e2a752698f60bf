#!/usr/bin/env bash
# A gzip file may consist of several members (RFC 1952, 2.2): `cat a.gz b.gz` is one. DecompressionStream reads it on Bun,
# and rejects it on Node and Deno, whose own gunzip read it. Needs npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
{ printf 'first ' | gzip; printf second | gzip; } >two.gz
cat >try.mjs <<'JS'
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
const packed = readFileSync("two.gz");
const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text()
  .catch((error) => `${error.name}: ${error.message}`);
console.log(`DecompressionStream: ${text} | zlib: ${gunzipSync(packed)}`);
JS
echo "two members, 'first ' and 'second'; most expect 'first second' wherever gzip is read; gzip itself: $(gzip -dc two.gz)"
node=$(node try.mjs)
echo "Node $(node --version): $node"
deno=$(./node_modules/.bin/deno run -A --no-check try.mjs)
echo "$(./node_modules/.bin/deno --version | sed -n 1p): $deno"
bun=$(./node_modules/.bin/bun try.mjs)
echo "Bun $(./node_modules/.bin/bun --version): $bun"
good="first second | zlib: first second"
[[ $node == *"TypeError"*"zlib: first second" && $deno == *"TypeError"*"zlib: first second" && $bun == "DecompressionStream: $good" ]]
