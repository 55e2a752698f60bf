/** Programme guides of strangers: packed, endless, with ids that clash. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { until } from "../support/until.ts";
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

/** 1 MiB of spaces, by `xz -6`. A file may consist of any number of such streams. */
const XZ_MIB = Buffer.from(
  "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj7///ANldABBv+7/+o7Fe5fg/sqomVfhocEFwFQ+N/R5MG4pCtxn0aRhxrmYjiopNL6MN2X+m44wjEVPgWRjFdYri" +
    "d/i2lH8MasDedElk4ulcU7IE2PdEDKtfDW1G6eXDdoi3llestk3haR1v+0uIEGxCy4g/XACP0E6vJiiUcR89jyThcJ6nI1/sKMuF0ZWYin4qkfIndfcZwAaY" +
    "TZj92K/VkA/EJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1Iq9+SVJQAAAAAA+deQ8Nzo7OQAAfUBgIBAAHmX" +
    "f0exxGf7AgAAAAAEWVo=",
  "base64",
);
/** 4 GiB in 1.2 MB. */
const XZ_BOMB = Buffer.concat(Array.from({ length: 4096 }, () => XZ_MIB));

async function call(target: Target, params: Record<string, string>, body?: string | Uint8Array<ArrayBuffer>) {
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

test("lists and guides that xz packs to a three thousandth of their size cost nobody else anything", async () => {
  const server = createServer((_, response) => void response.writeHead(200).end(XZ_BOMB));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/guide.xml.xz`;
  try {
    await withTarget(async (target) => {
      const fields = { method: "epg_source_add", url, update_interval: "0", update_now: "0" };
      const id = String((await call(target, fields)).result);
      await assertHarmless(target, async () => {
        const guide = await call(target, { method: "epg_source_update", id });
        assertMatch(guide.error!.message, /text of great length|unpacks to more than/);
        const list = await call(target, { method: "playlist_import" }, new Uint8Array(XZ_BOMB));
        const task = { method: "get_task", task_id: String(list.result["task_id"]) };
        let told = "";
        await until("the list is refused", async () => {
          told = JSON.stringify(await call(target, task));
          return !/"state":"(queued|running)"/.test(told);
        }, 60_000);
        assertMatch(told, /is longer than|unpacks to more than/);
      });
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
