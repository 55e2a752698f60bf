/** Channels of strangers: upstreams that hang, never end their lists or lead in circles, changed many times a second. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { assert } from "@std/assert";
import { EndlessClip } from "../playback/live-support.ts";
import { assertHarmless, withTarget } from "./support/target.ts";

/** Changes of channel a second: 10,000 a minute. */
const CHANGES_A_SECOND = 167;
const SECONDS = 8;

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

test("channels that hang, flood or lead in circles cost nobody else anything, at 10,000 changes a minute", async () => {
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
      const statuses = new Map<number, number>();
      const change = async (at: number) => {
        const query = new URLSearchParams({
          direct_url: `${base}/${kinds[at % kinds.length]}/${at}`,
          pid: `viewer ${at % 20}`,
        });
        const response = await fetch(`${target.url}/engine/getstream?${query}`, { signal: AbortSignal.timeout(1000) })
          .catch(() => null);
        statuses.set(response?.status ?? 0, (statuses.get(response?.status ?? 0) ?? 0) + 1);
        await response?.body?.cancel().catch(() => {});
      };
      await assertHarmless(target, async () => {
        const running: Promise<void>[] = [];
        for (let tick = 0; tick < SECONDS * 10; tick++) {
          const from = Math.round(tick * CHANGES_A_SECOND / 10);
          const to = Math.round((tick + 1) * CHANGES_A_SECOND / 10);
          for (let at = from; at < to; at++) running.push(change(at));
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
        await Promise.all(running);
      });
      assert((statuses.get(200) ?? 0) > 0, JSON.stringify([...statuses]));
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
