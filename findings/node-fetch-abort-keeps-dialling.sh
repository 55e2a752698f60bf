#!/usr/bin/env bash
# fetch() on Node: when its signal fires while it still connects, the promise rejects, but the socket goes on connecting
# until undici's own time is over, 10 s. Needs Linux, root (a network namespace), iproute2 and npm. Exits with 0 while that
# is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent node@24.21.0 bun@1.4.5 deno@2.9.6
npm rebuild --silent node bun deno >/dev/null
cat >try.mjs <<'JS'
import { spawnSync } from "node:child_process";
import { setTimeout } from "node:timers/promises";
const dialling = () =>
  spawnSync("ss", ["-tnH", "state", "syn-sent"], { encoding: "utf8" }).stdout.split("\n").filter((line) => line !== "").length;
const ender = new AbortController();
const all = Array.from({ length: 20 }, (_, i) => fetch(`http://10.9.9.77:${8000 + i}/`, { signal: ender.signal }).catch(() => {}));
await setTimeout(500);
const before = dialling();
ender.abort();
await Promise.all(all);
await setTimeout(1000);
console.log(`${before} before, ${dialling()} a second after`);
process.exit();
JS
# Packets to that address go out and are never answered.
silent() {
  unshare -n bash -c 'ip link set lo up; ip link add v0 type veth peer name v1; ip address add 10.9.9.1/24 dev v0
    ip link set v0 up; ip link set v1 up; ip neighbour add 10.9.9.77 lladdr 02:00:00:00:00:77 dev v0; "$@"' bash "$@"
}
bin=$PWD/node_modules/.bin
echo "20 calls of fetch() to a silent address, aborted after half a second; sockets that are connecting; most expect 0 after"
node=$(silent "$bin/node" try.mjs)
echo "Node $("$bin/node" --version): $node"
echo "$("$bin/deno" --version | sed -n 1p): $(silent "$bin/deno" run -A --no-check try.mjs)"
echo "Bun $("$bin/bun" --version): $(silent "$bin/bun" try.mjs)"
[ "$node" = "20 before, 20 a second after" ]
