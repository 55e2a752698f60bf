#!/usr/bin/env bash
# process.memoryUsage() on Bun: buffers outside the heap count as heapUsed, which so exceeds heapTotal; arrayBuffers is
# always 0, on Deno as well. Needs npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
cat >try.mjs <<'JS'
globalThis.kept = Array.from({ length: 20 }, () => Buffer.alloc(5e6, 1));
const { heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
const mb = (bytes) => Math.round(bytes / 1e6);
console.log(`heapUsed ${mb(heapUsed)} heapTotal ${mb(heapTotal)} external ${mb(external)} arrayBuffers ${mb(arrayBuffers)}`);
JS
echo "100 MB of buffers; most expect heapUsed <= heapTotal, both small, and external = arrayBuffers = 100 (MB)"
echo "Node $(node --version): $(node try.mjs)"
deno=$(./node_modules/.bin/deno run -A --no-check try.mjs)
echo "$(./node_modules/.bin/deno --version | sed -n 1p): $deno"
bun=$(./node_modules/.bin/bun try.mjs)
echo "Bun $(./node_modules/.bin/bun --version): $bun"
read -r used total buffers < <(sed -E 's/heapUsed ([0-9]+) heapTotal ([0-9]+) external [0-9]+ arrayBuffers ([0-9]+)/\1 \2 \3/' <<<"$bun")
((used > 50 && used > total && buffers == 0)) && [[ $deno == *"arrayBuffers 0" ]]
