/** What an export says about items, and an import understands again. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { readExtInf, writeExtInf } from "../../src/playlist/m3u/extinf.ts";
import { locateItem } from "../../src/playlist/locate.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { textOf } from "../support/text.ts";
import { listOf, type TestLists, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();
const id = (digit: number) => String(digit).repeat(40);

function exported({ lists }: TestLists, failover = false): Promise<string> {
  const request = { playbackBase: "http://box/engine", output: "getstream", logoUrl: () => "", failover } as const;
  const encoder = new TextEncoder();
  async function* bytes() {
    for await (const part of lists.export(request)) yield encoder.encode(part);
  }
  return textOf(bytes());
}

async function imported({ lists }: TestLists, text: string): Promise<number> {
  const task = await lists.import(await lists.keep(new Blob([text]).stream()), "", true);
  await lists.tasks.ended(task);
  return lists.tasks.status(task).skipped;
}

/** All items without what says who has them, and when. */
async function shown({ playlist }: TestLists): Promise<unknown[]> {
  const all = JSON.parse(`[${await textOf(playlist.json())}]`) as Record<string, unknown>[];
  return all.map(({ id: _id, created_at: _made, updated_at: _changed, external_playlist_id: _list, ...item }) => item);
}

test("an import of an export has the same items, own ones and those of lists", async () => {
  const clock = new FakeClock();
  await withLists(clock, async (all) => {
    const { lists, playlist } = all;
    server.behaviour.text = listOf(["Grouped", "http://h/1", ' group-title="G;H"'], ["Alone", "http://h/2.m3u8"]);
    await add(lists, { category: "My list", type: "broadcast" });
    const bt = { transportType: "bt" } as const;
    await playlist.add({ ...bt, title: "Live", infohash: id(1), isLive: 1, category: 'Cat, "x"' });
    await playlist.add({
      ...bt,
      title: "Film",
      contentId: id(2),
      isLive: 0,
      poster: "http://p/x.jpg",
      description: "Two\nlines, (with ‚this‘)",
    });
    await playlist.add({ transportType: "hls", title: "Hls", url: "http://h/no-ending", isLive: 1 });
    await playlist.add({ transportType: "dash", title: "Dash", url: "http://h/dash", isLive: -1 });
    await playlist.add({
      transportType: "direct",
      title: "Camera",
      url: "http://h/cam.mp4",
      isLive: 1,
      category: "Cat",
    });
    const text = await exported(all);
    const before = (await shown(all)).map((item) => ({ ...item as Record<string, unknown> }));
    assertEquals(await imported(all, text), 7, "into the same library");
    assertEquals(await imported(all, await exported(all, true)), 7, "with addresses that name the items");
    assertEquals(await shown(all), before);
    await withLists(clock, async (other) => {
      assertEquals(await imported(other, text), 0);
      // A line of M3U has no line ends.
      const film = before.find(({ title }) => title === "Film")!;
      film["description"] = "Two lines, (with ‚this‘)";
      assertEquals(await shown(other), before);
      assertEquals((await exported(other)).replaceAll(' x-external="1"', ""), text.replaceAll(' x-external="1"', ""));
    });
  });
});

test("writeExtInf() writes no comma before that of the title and no quote in a value, and readExtInf() reads back the values", () => {
  const attributes = {
    "tvg-name": "News, at 9,5",
    "group-title": 'A, "b"',
    "x-description": "he said, ‘so’ (‚und so‘), it is",
  };
  const entry = { durationSeconds: -1, attributes, title: "News, at 9" };
  const line = writeExtInf({ ...entry, attributes: { ...attributes, "tvg-logo": "http://h/w_1,h_2/a.png" } });
  // mpv and VLC take what follows the first comma for the title.
  assertEquals(line.slice(line.indexOf(",") + 1), "News, at 9");
  // Kodi takes values in double quotes alone.
  assertEquals(line.split('"').length - 1, 8);
  const read = readExtInf(line.slice("#EXTINF:".length));
  assertEquals(read, { ...entry, attributes: { ...attributes, "tvg-logo": "http://h/w_1%2Ch_2/a.png" } });
});

test("writeExtInf() leaves the id as the guide has it", () => {
  const line = writeExtInf({ durationSeconds: -1, attributes: { "tvg-id": "a,b" }, title: "A" });
  assertEquals(line, '#EXTINF:-1 tvg-id="a,b",A');
});

test("readExtInf() reads names without a comma, after a wide one, and values with escaped quotes", () => {
  const table: [string, string, Record<string, string>][] = [
    ["-1 Name of it", "Name of it", {}],
    ['-1 tvg-id="a" group-title="G" Name', "Name", { "tvg-id": "a", "group-title": "G" }],
    ['-1 tvg-id="a"', "", { "tvg-id": "a" }],
    ["-1，央视", "央视", {}],
    ['-1 group-title="新闻"，央视，一', "央视，一", { "group-title": "新闻" }],
    ['-1 tvg-name="The \\"Best\\" of",T', "T", { "tvg-name": 'The "Best" of' }],
    ['-1 x="C:\\dir\\" y="2",T', "T", { x: "C:\\dir\\", y: "2" }],
    ['-1 tvg-name="a\\"b", c="d",T', "T", { "tvg-name": 'a"b', c: "d" }],
  ];
  for (const [text, title, attributes] of table) {
    const read = readExtInf(text);
    assertEquals([read.title, read.attributes, read.durationSeconds], [title, attributes, -1], text);
  }
});

test("locateItem() reads addresses of engines under other prefixes, and of programs in front of them", () => {
  const torrent = (address: string) => {
    const { transport_type, content_id, url } = locateItem(address);
    return [transport_type, content_id, url];
  };
  assertEquals(torrent(`http://127.0.0.1:8000/pid/${id(3).toUpperCase()}/stream.mp4`), ["bt", id(3), null]);
  assertEquals(torrent(`http://box/content_id/${id(4)}/x.ts`), ["bt", id(4), null]);
  assertEquals(torrent("http://box/other/getstream?url=http%3A%2F%2Fx%2Fa.file"), ["bt", null, "http://x/a.file"]);
  assertEquals(torrent("http://box/pid/short/stream.mp4")[0], "direct");
});

test("an export whose channels lead through the engine has its address for what they sent earlier, too", async () => {
  await withLists(new FakeClock(), async (all) => {
    const more = 'catchup="append" catchup-source="?utc={utc}" catchup-days="3"';
    await imported(all, `#EXTM3U\n#EXTINF:-1 ${more},News\nhttp://h/live\n#EXTINF:-1,Plain\nhttp://h/other\n`);
    const [, news, , plain] = (await exported(all, true)).split("\n");
    assertEquals(/ catchup="(.*?)"/.exec(news!)?.[1], "default");
    assertEquals(/ catchup-source="(.*?)"/.exec(news!)?.[1], "http://box/engine/getstream?item=1&start_from={utc}");
    assertEquals(/ catchup-days="(.*?)"/.exec(news!)?.[1], "3");
    assertEquals(/catchup/.test(plain!), false);
    assertEquals(/ catchup="(.*?)"/.exec(await exported(all))?.[1], "append", "the provider's own");
  });
});
