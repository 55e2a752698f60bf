/** Programme guides of strangers: packed, endless, with ids that clash. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

const MIB = 1024 * 1024;
const CHANNELS = 20_000;

/** 200 MiB without an element. */
const SPACES = gzipSync(Buffer.concat([Buffer.from("<tv>"), Buffer.alloc(200 * MIB, " ")]));
/** Channels that all have the library's names, and programmes of year 0, of one moment, of all days. */
const CLASHES = gzipSync(
  `<tv>${
    Array.from({ length: CHANNELS }, (_, at) => `<channel id="${at % 3}"><display-name>Alpha</display-name></channel>`)
      .join("")
  }${
    Array.from({ length: CHANNELS }, (_, at) => {
      const start = at % 4 === 0 ? "00000101000000" : at % 4 === 1 ? new Date().toISOString() : `2026112${at % 10}0000`;
      return `<programme start="${start}" channel="${at % 5}"><title>${at}</title></programme>`;
    }).join("")
  }</tv>`,
);

/** Sends programmes, each of a channel of its own, until the reader leaves. */
function sendForEver(response: ServerResponse): void {
  let at = 0;
  const piece = () => {
    let text = "";
    for (const end = at + 200; at < end; at++) {
      text += `<programme start="20261127010000" channel="c${at}"><title>${"x".repeat(200)}</title></programme>`;
    }
    return text;
  };
  response.write("<tv>");
  const send = () => {
    while (!response.destroyed && response.write(piece()));
  };
  response.on("drain", send);
  send();
}

async function call(target: Target, params: Record<string, string>, body?: string) {
  const query = new URLSearchParams({ token: target.token(), ...params });
  const init = body === undefined ? {} : { method: "POST", body };
  const answer = await fetch(`${target.url}/server/api?${query}`, init);
  return await answer.json() as { result: number & { [name: string]: number }; error: { message: string } | null };
}

test("guides that unpack to much, clash or never end cost nobody else anything", async () => {
  const server = createServer((request, response) => {
    if (request.url === "/endless") return sendForEver(response);
    response.writeHead(200).end(request.url === "/spaces" ? SPACES : CLASHES);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await withTarget(async (target) => {
      const list = `#EXTM3U\n${"#EXTINF:-1,Alpha\nhttp://h/a\n".repeat(2000)}#EXTINF:-1 tvg-id="2",Beta\nhttp://h/b\n`;
      assertEquals((await call(target, { method: "playlist_import" }, list)).error, null);
      const add = async (path: string) => {
        const fields = { method: "epg_source_add", url: base + path, update_interval: "0", update_now: "0" };
        return String((await call(target, fields)).result);
      };
      await assertHarmless(target, async () => {
        const spaces = await call(target, { method: "epg_source_update", id: await add("/spaces") });
        assertMatch(spaces.error!.message, /text of great length/);
        const clashes = await call(target, { method: "epg_source_update", id: await add("/clashes") });
        assertEquals(clashes.error, null);
        const id = await add("/endless");
        const endless = call(target, { method: "epg_source_update", id });
        await new Promise((resolve) => setTimeout(resolve, 4000));
        assertEquals((await call(target, { method: "epg_source_delete", id })).error, null);
        assertMatch((await endless).error!.message, /deleted meanwhile/);
      });
      assert((await call(target, { method: "epg_sources" })).error === null);
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
