/** A tracker of web browsers that sends offers and answers without end. */
import { createServer } from "node:http";
import { test } from "node:test";
import { assert, assertLess } from "@std/assert";
import websocket from "websocket-driver";
import { noise } from "../support/random.ts";
import { listen, stop } from "../support/web.ts";
import { costOf, MAX_GROWTH_MIB, withTarget } from "./support/target.ts";

const FLOOD_MS = 1_500;
/** Offers in each turn of 20 ms. */
const OFFERS = 20;

const text = (seed: number) => String.fromCharCode(...noise(20, seed));
/** Well made, with a key that nobody has and addresses where nobody is. */
const description = (setup: string, seed: number) =>
  [
    "v=0",
    "o=- 1 2 IN IP4 127.0.0.1",
    "s=-",
    "t=0 0",
    "a=group:BUNDLE 0",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    ...Array.from({ length: 16 }, (_, i) =>
      `a=candidate:${i} 1 udp ${i + 1} 127.0.9.${i + 1} ${40_000 + seed % 1000} typ host`),
    "a=ice-ufrag:abcd",
    "a=ice-pwd:abcdefghijklmnopqrstuvwx",
    `a=fingerprint:sha-256 ${
      Array.from({ length: 32 }, () => "AB").join(":")
    }`,
    `a=setup:${setup}`,
    "a=mid:0",
    "a=sctp-port:5000",
    "",
  ].join("\r\n");

test("offers and answers without end, well made or not, take little memory, and others are answered", () =>
  withTarget(async (target) => {
    let sent = 0;
    let flood = (_send: (fields: object) => void, _offers: readonly { offer_id: string }[]) => {};
    const server = createServer();
    const sockets: { destroy(): void }[] = [];
    server.on("upgrade", (request, socket, head) => {
      const driver = websocket.http(request);
      driver.io.write(head);
      socket.pipe(driver.io).pipe(socket);
      sockets.push(socket);
      socket.on("error", () => {});
      driver.on("message", ({ data }: { data: unknown }) => {
        const { info_hash, offers } = JSON.parse(String(data));
        const send = (fields: object) => {
          sent++;
          driver.text(JSON.stringify({ action: "announce", info_hash, ...fields }));
        };
        send({ interval: 120, complete: 1, incomplete: 1 });
        flood(send, offers);
      });
      driver.start();
    });
    const port = await listen(server);
    const flooded = new Promise<void>((resolve) => {
      flood = (send, offers) => {
        for (const { offer_id } of offers) {
          send({ offer_id, peer_id: text(3), answer: { type: "answer", sdp: description("active", 1) } });
        }
        const untilMs = performance.now() + FLOOD_MS;
        const timer = setInterval(() => {
          if (performance.now() > untilMs) return (clearInterval(timer), resolve());
          for (let i = 0; i < OFFERS; i++) {
            const whose = { offer_id: text(sent), peer_id: text(sent + 1) };
            send({ ...whose, offer: { type: "offer", sdp: description("actpass", sent) } });
            send({ ...whose, answer: { type: "answer", sdp: description("active", sent) } });
            send({ ...whose, offer: { type: "offer", sdp: "v=0\r\n".repeat(1000) } });
          }
        }, 20);
      };
    });
    try {
      const { growthMib } = await costOf(target, async () => {
        const magnet = `magnet:?xt=urn:btih:${"a".repeat(40)}&tr=${encodeURIComponent(`ws://127.0.0.1:${port}/`)}`;
        const ending = new AbortController();
        const query = new URLSearchParams({ format: "json", magnet });
        const started = fetch(`${target.url}/engine/getfile?${query}`, { signal: ending.signal }).catch(() => {});
        await flooded;
        ending.abort();
        await started;
      });
      assertLess(growthMib, MAX_GROWTH_MIB, "memory on top of what the engine had, MiB");
      assert(sent > 500, `${sent} messages`);
    } finally {
      for (const socket of sockets) socket.destroy();
      await stop(server);
    }
  }));
