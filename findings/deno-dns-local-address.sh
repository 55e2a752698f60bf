#!/usr/bin/env bash
# A resolver of node:dns can send its queries from a chosen local address, which is how a program keeps them on one interface. Node
# and Bun do; Deno has the method and throws when it is called. Needs npm and internet access for the packages.
# Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts deno@2.9.6 bun@1.4.5 node@24.21.0
npm rebuild --silent deno bun node
cat >ask.mjs <<'JS'
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
const server = createSocket("udp4");
await new Promise((resolve) => server.bind(0, "127.0.0.1", resolve));
const asked = new Promise((resolve) => server.once("message", (_, from) => resolve(`asks from ${from.address}`)));
const resolver = new Resolver({ timeout: 500, tries: 1 });
resolver.setServers([`127.0.0.1:${server.address().port}`]);
try {
  resolver.setLocalAddress("127.0.0.2");
  resolver.resolve4("name.example").catch(() => {});
  console.log(await asked);
} catch (error) {
  console.log(`throws ${error.code ?? error.message}`);
}
process.exit(0);
JS
bin=node_modules/.bin
$bin/node --version; $bin/deno --version | head -n 1; $bin/bun --version
node=$(timeout 20 "$bin/node" ask.mjs); bun=$(timeout 20 "$bin/bun" ask.mjs); deno=$(timeout 20 "$bin/deno" run -A ask.mjs)
echo "Node $node; Bun $bun; Deno $deno"
[[ $node == "asks from 127.0.0.2" && $bun == "$node" && $deno == "throws ERR_NOT_IMPLEMENTED" ]]
