/** Long lists of fronts: the first client that asks for one keeps nobody waiting. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { createTransportFile } from "../../src/metainfo/create.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

const MANY = 10_000;

async function call(target: Target, method: string, params: Record<string, string>, body?: FormData) {
  const query = new URLSearchParams({ method, token: target.token(), ...params });
  const answer = await fetch(`${target.url}/server/api?${query}`, body === undefined ? {} : { method: "POST", body });
  return (await answer.json()).result;
}

async function entries(target: Target, path: string): Promise<number> {
  const response = await fetch(`${target.url}/webdav/${path}`, { method: "PROPFIND", headers: { depth: "1" } });
  return (await response.text()).split("<D:response>").length - 2;
}

test("the first listings of a torrent of 10,000 files and of 10,000 items keep another client waiting for few entries", () =>
  withTarget(async (target) => {
    const files = Array.from({ length: MANY }, (_, at) => ({ path: `Track ${at}.flac`, sizeBytes: 1000 }));
    const shape = { pieceLengthBytes: 16_384, pieceHashes: new Uint8Array(20 * Math.ceil(1000 * MANY / 16_384)) };
    const created = await createTransportFile({ name: "Music", files, trackers: [], isPrivate: false, ...shape });
    const form = new FormData();
    form.set("file", new File([created.bytes.slice()], "music.torrent"));
    const item = await call(target, "playlist_add_item", { title: "Music" }, form);
    const list = new FormData();
    const lines = Array.from(
      { length: MANY },
      (_, at) => `#EXTINF:60,Film ${at}\nmagnet:?xt=urn:btih:${at.toString(16).padStart(40, "0")}\n`,
    );
    list.set("file", new File(["#EXTM3U\n", ...lines], "list.m3u"));
    const { task_id } = await call(target, "playlist_import", {}, list);
    for (let state = ""; state !== "done"; await new Promise((resolve) => setTimeout(resolve, 50))) {
      ({ state } = await call(target, "get_task", { task_id: String(task_id) }));
    }
    await assertHarmless(target, async () => {
      assertEquals(await entries(target, `All/Music%20[${item}]/`), MANY);
      assertEquals(await entries(target, "All/"), MANY + 1);
      await (await fetch(`${target.url}/torznab/api?t=search`)).body?.cancel();
    });
  }, ["--front", "webdav,torznab"]));
