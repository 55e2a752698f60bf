/** The groups of entries, and the guides of lists that were joined. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { groupsOf } from "../../src/playlist/group-names.ts";
import { readExtInf } from "../../src/playlist/m3u/extinf.ts";
import { guidesOf, readM3u } from "../../src/playlist/m3u/read.ts";
import { writeM3u } from "../../src/playlist/m3u/write.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { listOf, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();

async function read(text: string) {
  const groups: [string, string][] = [];
  const guides: string[][] = [];
  for await (const event of readM3u(new Blob([text]).stream())) {
    if (event.kind === "entry") groups.push([event.entry.title, event.entry.group]);
    if (event.kind === "header") guides.push(guidesOf(event.header));
  }
  return { groups, guides };
}

test("readM3u() lets #EXTGRP hold until the next one, an empty one included, and writeM3u() writes it so", async () => {
  const text =
    "#EXTM3U\n#EXTGRP:A\n#EXTINF:-1,1\nhttp://h/1\n#EXTINF:-1,2\nhttp://h/2\n#EXTINF:-1,3\n#EXTGRP:B\nhttp://h/3\n" +
    "#EXTINF:-1,4\nhttp://h/4\n#EXTGRP:\n#EXTINF:-1,5\nhttp://h/5\n#EXTGRP:C\n#EXTM3U\n#EXTINF:-1,6\nhttp://h/6\n";
  const expected = [["1", "A"], ["2", "A"], ["3", "B"], ["4", "B"], ["5", ""], ["6", ""]];
  assertEquals((await read(text)).groups, expected);
  const entries = expected.map(([title, group]) => {
    return {
      url: `http://h/${title}`,
      title: title!,
      group: group!,
      durationSeconds: -1,
      attributes: {},
      directives: [],
    };
  });
  let written = "";
  for await (const part of writeM3u({ attributes: {} }, entries)) written += part;
  assertEquals((await read(written)).groups, expected);
});

test("readM3u() yields the headers of joined lists, wherever they stand", async () => {
  const table: [string, string[][]][] = [
    ['# made by hand\n#EXTM3U url-tvg="http://g/1"\n', [["http://g/1"]]],
    ['\n#PLAYLIST:x\n#EXTM3U:url-tvg="http://g/1"\n', [["http://g/1"]]],
    ['#EXTM3U url-tvg="http://g/1"\nhttp://h/\n\uFEFF#EXTM3U x-tvg-url="http://g/2"\n', [["http://g/1"], [
      "http://g/2",
    ]]],
    ['#EXTM3U url-tvg="http://g/1;http://g/2 , https://g/3?a=1,2;3"', [[
      "http://g/1",
      "http://g/2",
      "https://g/3?a=1,2;3",
    ]]],
    ['#EXTM3U url-epg="http://g/1 http://g/2"', [["http://g/1", "http://g/2"]]],
  ];
  for (const [text, guides] of table) assertEquals((await read(text)).guides, guides, text);
});

test("readExtInf() takes the first value of a repeated attribute, and all groups", () => {
  const { attributes, title } = readExtInf(
    '-1 tvg-id="" tvg-id="a" tvg-id="b" group-title="A" group-title="B",group-title="C",T',
  );
  assertEquals([attributes, title], [{ "tvg-id": "a", "group-title": "A;B;C" }, "T"]);
});

test("groupsOf() separates groups and leaves none out", () => {
  assertEquals(groupsOf("A;B"), ["A", "B"]);
  assertEquals(groupsOf(" A ;; B;A; "), ["A", "B"]);
  assertEquals(groupsOf("Spo\u0301rt;Sp\u00f3rt"), ["Sp\u00f3rt"]);
  assertEquals(groupsOf(""), []);
});

test("entries of one group are in one category, however it is written, and further groups are kept", async () => {
  await withLists(new FakeClock(), async ({ lists, playlist, items }) => {
    const groups = ["Sport", "SPORT", " sport ", "Spo\u0301rt", "SP\u00d3RT", "News;Sport;World", ""];
    server.behaviour.text = listOf(
      ...groups.map((group, i) =>
        [`T${i}`, `http://h/${i}`, ` group-title="${group}"`] satisfies [string, string, string]
      ),
    );
    const shown = async () => [...(await items()).values()].map((item) => [item.category, item.subcategory]);
    const expected = [
      ["Sport", ""],
      ["Sport", ""],
      ["Sport", ""],
      ["Sp\u00f3rt", ""],
      ["Sp\u00f3rt", ""],
      ["News", "Sport; World"],
      [null, ""],
    ];
    const id = await add(lists);
    assertEquals(await shown(), expected);
    server.behaviour.text = server.behaviour.text.replaceAll("Sport", "SPORT");
    await lists.updateExternal(id);
    assertEquals((await shown()).slice(0, 5), expected.slice(0, 5), "the first spelling stays");
    await lists.editExternal(id, { category: "TV", name: "n", updateInterval: 0 });
    await lists.updateExternal(id);
    assertEquals((await shown())[5], ["TV", "News; SPORT; World"]);
    await lists.editExternal(id, { category: "", name: "n", updateInterval: 0 });
    assertEquals((await shown())[5]![0], "News");
    await lists.deleteExternal(id);
    const text = new Blob([server.behaviour.text]).stream();
    await lists.tasks.ended(await lists.import(await lists.keep(text), "", true));
    assertEquals((await playlist.categories()).map(({ name, items }) => [name, items]), [
      ["News", 1],
      ["SPORT", 4],
      ["Sp\u00f3rt", 2],
      ["World", 1],
    ]);
  });
});
