#!/usr/bin/env bash
# A program with much to compute leaves the event loop a turn after each step, by setImmediate() or by a message to itself.
# Sockets do not get their share of these turns everywhere. Each step takes 1 ms; one byte is sent over loopback, and the
# steps until it is received are counted. Needs node and npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
cat >try.mjs <<'JS'
import net from "node:net";
const LIMIT = 20_000;
const { port1, port2 } = new MessageChannel();
const next = process.argv[2] === "message" ? () => port2.postMessage(0) : () => setImmediate(step);
let steps = 0;
let client;
const done = () => {
  console.log(steps - 10);
  process.exit();
};
function step() {
  const until = performance.now() + 1;
  while (performance.now() < until);
  steps++;
  if (steps === 10) client.write("x");
  if (steps === LIMIT + 10) done();
  next();
}
const server = net.createServer((socket) => socket.on("data", done)).listen(0, "127.0.0.1", () => {
  client = net.connect(server.address().port, "127.0.0.1", () => setTimeout(() => {
    port1.onmessage = step;
    next();
  }, 100));
});
JS
counted() { echo "$1: after a step by message $message, by setImmediate $immediate"; }
try() { message=$("$@" try.mjs message); immediate=$("$@" try.mjs immediate); }
echo "steps of 1 ms until a byte is received; most expect 1 or 2"
try node; counted "Node $(node --version)"; ((message > 500 && immediate < 5)) || exit 1
try ./node_modules/.bin/deno run -A --no-check; counted "$(./node_modules/.bin/deno --version | sed -n 1p)"
((message > 500 && immediate > 20)) || exit 1
try ./node_modules/.bin/bun; counted "Bun $(./node_modules/.bin/bun --version)"; ((message > 500 && immediate < 5)) || exit 1
