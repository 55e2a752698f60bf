/**
 * `RUNTIME scripts/bench/webrtc.ts [MB]`: what a channel of WebRTC to a page of Chromium carries on loopback, each way, and the
 * processor time of this process alone.
 */
import { createServer } from "node:http";
import process from "node:process";
import { chromium } from "playwright-core";
import { loadPorts } from "../../platform/detect.ts";

const BYTES = Number(process.argv[2] ?? 8) * 1e6;
const BLOCK = new Uint8Array(16 * 1024);
const ROUNDS = 2;

/** In the page: answers the offer, counts what comes, and sends as much as the text that comes says. */
const PAGE = `async (offer) => {
  const peer = new RTCPeerConnection({ iceServers: [] });
  peer.ondatachannel = ({ channel }) => {
    channel.binaryType = "arraybuffer";
    channel.bufferedAmountLowThreshold = 1 << 18;
    globalThis.got = 0;
    channel.onmessage = ({ data }) => globalThis.got += data.byteLength;
    globalThis.send = async (bytes) => {
      const block = new Uint8Array(${BLOCK.length});
      for (let sent = 0; sent < bytes; sent += block.length) {
        while (channel.bufferedAmount > 1 << 20) await new Promise((done) => channel.onbufferedamountlow = done);
        channel.send(block);
      }
    };
  };
  await peer.setRemoteDescription({ type: "offer", sdp: offer });
  await peer.setLocalDescription(await peer.createAnswer());
  while (peer.iceGatheringState !== "complete") await new Promise((done) => peer.onicegatheringstatechange = done);
  globalThis.peer = peer;
  return peer.localDescription.sdp;
}`;

const { pages } = await loadPorts({ log: { level: "error" } });
const server = createServer((_, response) => void response.setHeader("content-type", "text/html").end(""));
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${(server.address() as { port: number }).port}/`);
const begunMs = performance.now();
const offer = await pages!.offer({ usesLoopback: true, allows: () => true });
console.log(`the library and the first offer: ${(performance.now() - begunMs).toFixed(0)} ms`);
await offer.accept(await page.evaluate(`(${PAGE})(${JSON.stringify(offer.sdp)})`) as string);
const connection = await offer.opened;

let received = 0;
let wake = () => {};
connection.open({
  data(chunk) {
    received += chunk.length;
    wake();
  },
  end() {},
  drain: () => wake(),
  close() {},
});

async function measure(what: string, run: () => Promise<void>): Promise<void> {
  const before = process.cpuUsage();
  const fromMs = performance.now();
  await run();
  const seconds = (performance.now() - fromMs) / 1000;
  const { user, system } = process.cpuUsage(before);
  const cpuSeconds = (user + system) / 1e6;
  const perGiB = (cpuSeconds / BYTES) * 2 ** 30;
  console.log(`${what}: ${(BYTES / 1e6 / seconds).toFixed(2)} MB/s, ${perGiB.toFixed(0)} CPU-s/GiB`);
}

for (let round = 0; round < ROUNDS; round++) {
  await measure("receives", async () => {
    received = 0;
    await page.evaluate(`void send(${BYTES})`);
    while (received < BYTES) await new Promise<void>((resolve) => wake = resolve);
  });
  await measure("sends", async () => {
    await page.evaluate("void (globalThis.got = 0)");
    for (let sent = 0; sent < BYTES; sent += BLOCK.length) {
      if (!connection.write(BLOCK)) await new Promise<void>((resolve) => wake = resolve);
    }
    await page.waitForFunction(`globalThis.got >= ${BYTES}`);
  });
}
await browser.close();
server.close();
process.exit(0);
