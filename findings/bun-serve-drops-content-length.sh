#!/usr/bin/env bash
# Bun.serve: the Content-Length of a response whose body is a stream is dropped, and so is that of a reply to HEAD. The
# client gets chunks and knows no length. Needs npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent bun@1.4.5 deno@2.9.6
npm rebuild --silent bun deno >/dev/null
cat >try.mjs <<'JS'
import net from "node:net";
async function* chunks() {
  for (let i = 0; i < 4; i++) {
    await new Promise((done) => setTimeout(done, 20));
    yield new TextEncoder().encode("hello");
  }
}
const fetch = () => new Response(ReadableStream.from?.(chunks()) ?? chunks(), { headers: { "content-length": "20" } });
const at = { port: 0, hostname: "127.0.0.1" };
const port = globalThis.Bun ? Bun.serve({ ...at, fetch }).port : Deno.serve({ ...at, onListen() {} }, fetch).addr.port;
const framing = (method) =>
  new Promise((resolve) => {
    let text = "";
    const socket = net.connect(port, "127.0.0.1", () => socket.write(`${method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`));
    socket.on("data", (data) => text += data);
    socket.on("close", () => resolve(/content-length: \d+|transfer-encoding: \w+/i.exec(text)?.[0].toLowerCase() ?? "neither"));
  });
console.log(`GET ${await framing("GET")}, HEAD ${await framing("HEAD")}`);
process.exit();
JS
right="GET content-length: 20, HEAD content-length: 20"
echo "new Response(stream, { headers: { \"content-length\": \"20\" } }); most expect: $right"
deno=$(./node_modules/.bin/deno run -A --no-check try.mjs); echo "$(./node_modules/.bin/deno --version | sed -n 1p), Deno.serve: $deno"
bun=$(./node_modules/.bin/bun try.mjs); echo "Bun $(./node_modules/.bin/bun --version), Bun.serve: $bun"
[[ $deno == "$right" && $bun == "GET transfer-encoding: chunked, HEAD transfer-encoding: chunked" ]]
