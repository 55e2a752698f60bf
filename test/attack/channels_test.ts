/** Viewers who change from channel to channel as soon as something comes, between upstreams of every bad kind. */
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { assert, assertLess } from "@std/assert";
import { EndlessClip } from "../playback/live-support.ts";
import { serveWeb } from "../support/web.ts";
import { costOf, MAX_GAP_MS, MAX_GROWTH_MIB, withTarget } from "./support/target.ts";

const VIEWERS = 8;
const ATTACK_MS = 6000;
/** Each viewer waits this long for a channel before it goes on, ms. */
const PATIENCE_MS = 300;
/** Upstreams that all players open at once, and a second afterwards (`playback/channel/opening-turns.ts`). */
const OPENED_AT_ONCE = 16;
const OPENED_PER_S = 8;

/**
 * Requests that may be under way at once: two each, a list and a segment, of 32 channels of which nothing has come, 8 that were left
 * and those that are watched.
 */
const MOST_AT_ONCE = 2 * (32 + 8 + VIEWERS);

const ZEROS = new Uint8Array(64 * 1024);
const numbered = (count: number, end = "") =>
  Buffer.from(
    `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${
      Array.from({ length: count }, (_, at) => `#EXTINF:1,\n${at}.ts\n`).join("")
    }${end}`,
  );
const LONG = numbered(44_000);
const LONG_AND_OVER = numbered(44_000, "#EXT-X-ENDLIST\n");
const TOO_LONG = numbered(200_000);
const FRAGMENTED = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MAP:URI="map.mp4"\n' +
  [1, 2, 3].map((at) => `#EXTINF:1,\n${at}.m4s\n`).join("");

/** Sends what `next` returns until the reader leaves. */
function sendForEver(response: ServerResponse, next: () => string | Uint8Array): void {
  const send = () => {
    while (!response.destroyed && response.write(next()));
  };
  response.on("drain", send);
  send();
}

function sendClip(response: ServerResponse): void {
  const media = new EndlessClip();
  sendForEver(response, () => media.next(500));
}

/** The head of a box of a gigabyte, and its content without end. */
function sendBox(response: ServerResponse, type: string): void {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(1 << 30);
  head.write(type, 4);
  response.write(head);
  sendForEver(response, () => ZEROS);
}

/** What a kind of upstream sends at `path`; `base` is its own address. */
const KINDS: Readonly<Record<string, (response: ServerResponse, path: string, base: string) => void>> = {
  hanging: () => {},
  missing: (response) => void response.writeHead(404).end(),
  silent: (response) => void response.write(new EndlessClip().next(1000)),
  flood: sendClip,
  redirects: (response, _path, base) =>
    void response.writeHead(302, { location: `${base}/redirects/${Math.random()}` }).end(),
  circles: (response, _path, base) =>
    void response.end(`#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${base}/circles/${Math.random()}\n`),
  endless: (response) => {
    let at = 0;
    response.write("#EXTM3U\n#EXT-X-TARGETDURATION:1\n");
    sendForEver(response, () => `#EXTINF:1,\n${at++}.ts\n`.repeat(50));
  },
  long: (response, path) => path.endsWith(".ts") ? sendForEver(response, () => ZEROS) : void response.end(LONG),
  over: (response, path) =>
    path.endsWith(".ts") ? sendForEver(response, () => ZEROS) : void response.end(LONG_AND_OVER),
  tooLong: (response, path) => void (path.endsWith(".ts") ? response.writeHead(404).end() : response.end(TOO_LONG)),
  segments: (response, path) => path.endsWith(".ts") ? sendClip(response) : void response.end(numbered(5)),
  fragments: (response, path) =>
    path.endsWith(".m4s")
      ? sendBox(response, "moof")
      : path.endsWith(".mp4")
      ? sendBox(response, "moov")
      : void response.end(FRAGMENTED),
};

test("viewers who change between bad channels without end keep nobody waiting, and few of them are opened", async () => {
  const opened = new Set<string>();
  let atOnce = 0;
  let mostAtOnce = 0;
  const web = await serveWeb((request, response) => {
    const path = request.url!;
    const [, kind = "", channel = ""] = path.split("/");
    if (/^\d+$/.test(channel)) opened.add(channel);
    mostAtOnce = Math.max(mostAtOnce, ++atOnce);
    response.on("close", () => atOnce--);
    response.on("error", () => {});
    KINDS[kind]!(response, path, web.base);
  });
  const kinds = Object.keys(KINDS);
  let changes = 0;
  let tookMs = 0;
  try {
    await withTarget(async (target) => {
      const change = async (viewer: number) => {
        const at = changes++;
        const address = `${web.base}/${kinds[at % kinds.length]}/${at}`;
        const query = new URLSearchParams({ direct_url: address, pid: `viewer ${viewer}` });
        const signal = AbortSignal.timeout(PATIENCE_MS);
        const response = await fetch(`${target.url}/engine/getstream?${query}`, { signal }).catch(() => null);
        await response?.body?.cancel().catch(() => {});
      };
      const cost = await costOf(target, async () => {
        const beganMs = performance.now();
        await Promise.all(Array.from({ length: VIEWERS }, async (_, viewer) => {
          while (performance.now() - beganMs < ATTACK_MS) await change(viewer);
        }));
        tookMs = performance.now() - beganMs;
      });
      assertLess(cost.growthMib, MAX_GROWTH_MIB, "memory on top of what the engine had, MiB");
      // Beside twenty other processes one run of Node took 0.56 s.
      assertLess(cost.longestGapMs, 2 * MAX_GAP_MS, "longest time without an answer for another client, ms");
    });
  } finally {
    await web.close();
  }
  assert(changes > 5 * VIEWERS, `${changes} changes`);
  // Each kind was among them.
  assert(opened.size > kinds.length, `${opened.size} channels`);
  assertLess(opened.size, OPENED_AT_ONCE + OPENED_PER_S * (tookMs / 1000 + 1), `channels opened of ${changes}`);
  assertLess(mostAtOnce, MOST_AT_ONCE, "requests under way at once");
});
