#!/usr/bin/env bash
# Deno: after child.kill() of node:child_process the event "exit" names that signal, whatever the child did with it. Here it
# catches SIGTERM, tidies up and exits with 3, as ffmpeg and many servers do. Needs node and npm. Exits with 0 while that is
# so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
cat >try.mjs <<'JS'
import { spawn } from "node:child_process";
const ending = (kill) =>
  new Promise((resolve) => {
    const script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    const child = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "inherit"] });
    child.stdout.once("data", () => kill(child));
    child.on("exit", (code, signal) => resolve(`${code} ${signal}`));
  });
console.log(`child.kill(): ${await ending((child) => child.kill())}; process.kill(): ${await ending(({ pid }) => process.kill(pid))}`);
JS
right="child.kill(): 3 null; process.kill(): 3 null"
echo "code and signal of a child that exits with 3 after SIGTERM; most expect: $right"
node=$(node try.mjs); echo "Node $(node --version): $node"
deno=$(./node_modules/.bin/deno run -A --no-check try.mjs); echo "$(./node_modules/.bin/deno --version | sed -n 1p): $deno"
bun=$(./node_modules/.bin/bun try.mjs); echo "Bun $(./node_modules/.bin/bun --version): $bun"
[[ $node == "$right" && $bun == "$right" && $deno == "child.kill(): null SIGTERM; process.kill(): 3 null" ]]
