import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { isSvg, Picture, PictureCache, pictureType } from "../../src/http/api/picture.ts";
import { serveEngine } from "../support/engine.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { serveWeb } from "../support/web.ts";
import { TOKEN } from "./support.ts";

const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3);
const SVG = "<svg onload='x()'><script>x()</script><path d='M0'/></svg>";
const GIF = new TextEncoder().encode("GIF89a......");

test("get_channel_icon answers the picture of an item, inline or fetched once", async () => {
  const web = await serveWeb((request, response) => {
    if (request.url === "/big") response.end(Buffer.alloc(2 * 1024 * 1024, PNG));
    else if (request.url === "/svg") {
      response.setHeader("content-type", "image/png").end(SVG);
    } else if (request.url === "/page") response.end("<html><svg/></html>");
    else if (request.url === "/packed") {
      response.setHeader("content-encoding", "gzip").end(gzipSync(Buffer.alloc(32 * 1024 * 1024, PNG)));
    } else response.setHeader("content-type", "text/html").end(GIF);
  });
  const { base, asked } = web;
  const served = await serveEngine({ accessToken: TOKEN });
  try {
    const add = async (title: string, poster: string, logo?: Uint8Array<ArrayBuffer>) => {
      const form = new FormData();
      const fields = { method: "playlist_add_item", token: TOKEN, title, video_url: `http://x/${title}`, poster };
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      if (logo !== undefined) form.append("logo_file", new File([logo], "logo"));
      const answer = await (await fetch(`${served.url}/server/api`, { method: "POST", body: form })).json();
      assertEquals(answer.error, null);
    };
    await add("With logo", "", PNG);
    await add("With poster", `${base}/gif`);
    await add("Plain", "");
    await add("Svg", `${base}/svg`);
    await add("Big", `${base}/big`);
    await add("Page", `${base}/page`);
    await add("Packed", `${base}/packed`);
    const list = await (await fetch(`${served.url}/server/api?method=playlist_get&token=${TOKEN}`)).json();
    const [first] = list.result.playlist;
    assertEquals(first.icons.length, 1);
    const icon = (query: string) => fetch(`${served.url}/server/api?method=get_channel_icon&${query}`);
    const table: [string, string, Uint8Array][] = [
      ["id=1", "image/png", PNG],
      [`item_hash=${first.hash}`, "image/png", PNG],
      [`item_hash=${first.hash_v2}`, "image/png", PNG],
      ["common_name=with%20LOGO!", "image/png", PNG],
      ["id=2", "image/gif", GIF],
      ["common_name=With%20poster", "image/gif", GIF],
    ];
    for (const [query, type, bytes] of table) {
      const response = await icon(query);
      assertEquals([response.status, response.headers.get("content-type")], [200, type], query);
      assertEquals(response.headers.get("x-content-type-options"), "nosniff");
      assertEquals(new Uint8Array(await response.arrayBuffer()), new Uint8Array(bytes));
    }
    assertEquals(asked.length, 1);
    const delete1 = `${served.url}/server/api?method=playlist_delete_item&token=${TOKEN}&id=1`;
    // The address from the listing works for an item in the trash, too.
    for (const _place of ["playlist", "trash"]) {
      assertEquals(new Uint8Array(await (await fetch(first.icons[0])).arrayBuffer()), PNG);
      await (await fetch(delete1)).body?.cancel();
    }
    assertEquals((await (await icon("common_name=With%20logo")).json()).error?.code, 5);

    const svg = await icon("id=4");
    assertEquals(svg.headers.get("content-type"), "image/svg+xml");
    assertMatch(svg.headers.get("content-security-policy")!, /default-src 'none'.*; sandbox$/);
    assertEquals(await svg.text(), SVG);

    const failures: [string, number][] = [
      ["", 2],
      ["id=3", 5],
      ["id=5", 3],
      ["id=6", 5],
      ["id=7", 3],
      ["id=99", 5],
      ["item_hash=x", 5],
    ];
    for (const [query, code] of failures) assertEquals((await (await icon(query)).json()).error?.code, code, query);
  } finally {
    await served.close();
    await web.close();
  }
});

test("pictureType() knows formats by their bytes", () => {
  const text = (value: string) => Uint8Array.from(value, (c) => c.charCodeAt(0));
  const table: [Uint8Array, string | null][] = [
    [PNG, "image/png"],
    [GIF, "image/gif"],
    [text("\xff\xd8\xff\xe0"), "image/jpeg"],
    [text("RIFF\x01\x00\x00\x00WEBPVP8 "), "image/webp"],
    [text("RIFF\x01\x00\x00\x00WAVE"), null],
    [text("<svg xmlns="), null],
    [text("<html>"), null],
    [new Uint8Array(), null],
  ];
  for (const [bytes, type] of table) assertEquals(pictureType(bytes), type);
});

test("isSvg() is true when the first element is svg, whatever precedes it", () => {
  const encoder = new TextEncoder();
  const table: [string, boolean][] = [
    ["<svg/>", true],
    ["<svg\nwidth='1'>", true],
    ['\ufeff<?xml version="1.0"?>\n<!-- <html> -->\n<!DOCTYPE svg PUBLIC "-//W3C" "http://x">\n<svg xmlns="x">', true],
    ['<!DOCTYPE svg [<!ENTITY a "b">\n<!ENTITY c "d">]>\n<svg>', true],
    ["<svgs>", false],
    ["<html><svg/></html>", false],
    ["text <svg/>", false],
    ["<!-- <svg/>", false],
    ["<!DOCTYPE svg [<svg>", false],
    ["<?".repeat(100_000), false],
    ["<!---->".repeat(100_000) + "<svg/>", false],
    ["", false],
  ];
  for (const [text, is] of table) assertEquals(isSvg(encoder.encode(text)), is, text.slice(0, 60));
});

test("PictureCache.get() makes a picture once for all callers, and remembers failures for a minute", async () => {
  const clock = new FakeClock();
  const cache = new PictureCache(clock);
  let made = 0;
  const make = () => (made++, Promise.resolve(new Picture(PNG)));
  const [one, other] = await Promise.all([cache.get("a", make), cache.get("a", make)]);
  assertEquals([made, one === other], [1, true]);
  const fail = () => (made++, Promise.reject(new Error("gone")));
  await assertRejects(() => Promise.all([cache.get("b", fail), cache.get("b", fail)]), Error, "gone");
  await assertRejects(() => cache.get("b", make), Error, "gone");
  assertEquals(made, 2);
  clock.advance(60_001);
  await cache.get("b", make);
  assertEquals(made, 3);
});

test("PictureCache.get() keeps pictures for an hour and within its room", async () => {
  const clock = new FakeClock();
  const cache = new PictureCache(clock);
  let made = 0;
  const get = (key: string, bytes: Uint8Array = PNG) =>
    cache.get(key, () => (made++, Promise.resolve(new Picture(bytes))));
  await get("a");
  await get("a");
  assertEquals(made, 1);
  clock.advance(3_600_000);
  await get("a");
  assertEquals(made, 2);
  const large = new Uint8Array(1024 * 1024);
  large.set(PNG);
  for (let i = 0; i < 16; i++) await get(`large ${i}`, large);
  made = 0;
  await get("large 15");
  assertEquals(made, 0);
  await get("a");
  assert(made === 1, "the oldest made room");
});
