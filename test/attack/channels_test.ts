/** Channels of strangers: upstreams that hang, never end their lists or lead in circles, changed many times a second. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { EndlessClip } from "../playback/live-support.ts";
import { until } from "../support/until.ts";
import { assertHarmless, withTarget } from "./support/target.ts";

/** Viewers who change the channel as soon as something, or a refusal, comes: together some thousand times a minute. */
const VIEWERS = 8;
/** A viewer of a channel of which nothing comes changes after this, ms. */
const PATIENCE_MS = 300;
const SECONDS = 5;

/** Sends what `next` makes as fast as it is read, until the reader leaves. */
function sendForEver(response: ServerResponse, next: () => string | Uint8Array): void {
  const send = () => {
    while (!response.destroyed && response.write(next()));
  };
  response.on("drain", send);
  send();
}

const KINDS: Readonly<Record<string, (response: ServerResponse, base: string) => void>> = {
  hang: () => {},
  missing: (response) => void response.writeHead(404).end(),
  ts: (response) => {
    const media = new EndlessClip();
    response.writeHead(200).write(media.next(1000));
  },
  live: (response) => {
    const media = new EndlessClip();
    response.writeHead(200).write(media.next(2500));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  },
  flood: (response) => {
    const media = new EndlessClip();
    sendForEver(response, () => media.next(500));
  },
  list: (response) => {
    response.write("#EXTM3U\n#EXT-X-TARGETDURATION:1\n");
    let at = 0;
    sendForEver(response, () => `#EXTINF:1,\n${at++}.ts\n`.repeat(50));
  },
  circle: (response, base) => {
    response.end(`#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${base}/circle/${Math.random()}\n`);
  },
  around: (response, base) => void response.writeHead(302, { location: `${base}/around/${Math.random()}` }).end(),
};

test("channels that hang, flood or lead in circles cost nobody else anything, however fast viewers change them", async () => {
  let base = "";
  const server = createServer((request, response) => {
    const kind = request.url!.split("/")[1]!;
    KINDS[kind]!(response, base);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await withTarget(async (target) => {
      const kinds = Object.keys(KINDS);
      let changes = 0;
      const change = async (viewer: number) => {
        const at = changes++;
        const query = new URLSearchParams({
          direct_url: `${base}/${kinds[at % kinds.length]}/${at}`,
          pid: `viewer ${viewer}`,
        });
        const url = `${target.url}/engine/getstream?${query}`;
        const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => null);
        await response?.body?.cancel().catch(() => {});
      };
      await assertHarmless(target, async () => {
        const untilMs = performance.now() + SECONDS * 1000;
        await Promise.all(Array.from({ length: VIEWERS }, async (_, viewer) => {
          while (performance.now() < untilMs) await change(viewer);
        }));
      });
      // What the attack left behind keeps nobody from watching.
      await until("a channel plays", async () => {
        const query = new URLSearchParams({ direct_url: `${base}/live/0`, pid: "viewer" });
        const response = await fetch(`${target.url}/engine/getstream?${query}`);
        await response.body?.cancel();
        return response.status === 200;
      }, 60_000);
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
