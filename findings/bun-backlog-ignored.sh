#!/usr/bin/env bash
# The backlog that net.Server.listen() is given does not reach the kernel on Bun. Needs Linux, npm and ss (iproute2). Exits
# with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
cat >try.mjs <<'JS'
import { spawnSync } from "node:child_process";
import http from "node:http";
const server = http.createServer().listen({ port: 0, host: "127.0.0.1", backlog: 16 }, () => {
  const { stdout } = spawnSync("ss", ["-tlnH", `sport = :${server.address().port}`], { encoding: "utf8" });
  console.log(stdout.trim().split(/\s+/)[2]);
  process.exit();
});
JS
echo "listen({ backlog: 16 }); most expect that the kernel holds 16 connections nobody has accepted"
echo "Node $(node --version): $(node try.mjs)"
echo "$(./node_modules/.bin/deno --version | sed -n 1p): $(./node_modules/.bin/deno run -A --no-check try.mjs)"
seen=$(./node_modules/.bin/bun try.mjs)
echo "Bun $(./node_modules/.bin/bun --version): $seen"
((seen != 16))
