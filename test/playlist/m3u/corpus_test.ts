/** Shapes of lists as providers write them, each in all line ends, chunks and beginnings: what becomes of their entries. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { groupOf } from "../../../src/playlist/entry.ts";
import { readM3u } from "../../../src/playlist/m3u/read.ts";

/** Lines without a header, and `title | group | id | address` of each entry. */
const SHAPES: [what: string, lines: string[], entries: string[]][] = [
  ["plain", ["#EXTINF:-1,A", "http://h/1"], ["A|||http://h/1"]],
  ["attributes", ['#EXTINF:-1 tvg-id="a" group-title="G",A', "http://h/1"], ["A|G|a|http://h/1"]],
  ["single quotes", ["#EXTINF:-1 tvg-id='a' group-title='G',A", "http://h/1"], ["A|G|a|http://h/1"]],
  ["no quotes", ["#EXTINF:-1 tvg-id=a group-title=G,A", "http://h/1"], ["A|G|a|http://h/1"]],
  ["tabs", ['#EXTINF:-1\ttvg-id="a"\tgroup-title="G"\t,A', "http://h/1"], ["A|G|a|http://h/1"]],
  ["a comma first", ['#EXTINF:-1, tvg-id="a" group-title="G",A', "http://h/1"], ["A|G|a|http://h/1"]],
  ["commas in values", ['#EXTINF:-1 tvg-id="a,b" group-title="G, H",A, B', "http://h/1"], ["A, B|G, H|a,b|http://h/1"]],
  ["an unclosed quote", ['#EXTINF:-1 group-title="G,A', "http://h/1"], ["A|||http://h/1"]],
  ["no comma", ['#EXTINF:-1 tvg-id="a" A B', "http://h/1"], ["A B||a|http://h/1"]],
  ["a wide comma", ['#EXTINF:-1 tvg-id="a"，A', "http://h/1"], ["A||a|http://h/1"]],
  ["no title", ['#EXTINF:-1 tvg-id="a",', "http://h/dir/1.ts"], ["1.ts||a|http://h/dir/1.ts"]],
  ["the title in tvg-name", ['#EXTINF:-1 tvg-name="A",', "http://h/1"], ["A|||http://h/1"]],
  ["a title with quotes", ['#EXTINF:-1,"A"', "http://h/1"], ['"A"|||http://h/1']],
  ["an escaped quote", ['#EXTINF:-1 group-title="G \\"1\\"",A', "http://h/1"], ['A|G "1"||http://h/1']],
  ["small letters", ['#extinf:-1 TVG-ID="a" Group-Title="G",A', "http://h/1"], ["A|G|a|http://h/1"]],
  ["a repeated id", ['#EXTINF:-1 tvg-id="" tvg-id="a",A', "http://h/1"], ["A||a|http://h/1"]],
  ["a repeated group", ['#EXTINF:-1 group-title="G" group-title="H",A', "http://h/1"], ["A|G;H||http://h/1"]],
  ["a group that holds", ["#EXTGRP:G", "#EXTINF:-1,A", "http://h/1", "#EXTINF:-1,B", "http://h/2"], [
    "A|G||http://h/1",
    "B|G||http://h/2",
  ]],
  ["a group after the title", ["#EXTINF:-1,A", "#EXTGRP:G", "http://h/1"], ["A|G||http://h/1"]],
  ["a group that ends", ["#EXTGRP:G", "#EXTINF:-1,A", "http://h/1", "#EXTGRP:", "#EXTINF:-1,B", "http://h/2"], [
    "A|G||http://h/1",
    "B|||http://h/2",
  ]],
  ["both groups", ["#EXTGRP:G", '#EXTINF:-1 group-title="H",A', "http://h/1"], ["A|H||http://h/1"]],
  ["fields behind a bar", ["#EXTINF:-1,A", "http://h/1.m3u8|User-Agent=x y"], ["A|||http://h/1.m3u8|User-Agent=x y"]],
  ["spaces in the address", ["#EXTINF:-1,A", "http://h/a b.ts"], ["A|||http://h/a b.ts"]],
  ["spaces around it", ["#EXTINF:-1,A", "  http://h/1  "], ["A|||http://h/1"]],
  ["empty lines", ["", "#EXTINF:-1,A", "", "http://h/1", ""], ["A|||http://h/1"]],
  ["remarks", ["# x", "#EXTINF:-1,A", "# y", "http://h/1"], ["A|||http://h/1"]],
  ["options of players", ["#EXTINF:-1,A", "#EXTVLCOPT:http-user-agent=x", "#KODIPROP:a=b", "http://h/1"], [
    "A|||http://h/1",
  ]],
  ["multicast", ["#EXTINF:-1,A", "udp://@239.0.0.1:1234"], ["A|||udp://@239.0.0.1:1234"]],
  ["a title without an address", ["#EXTINF:-1,A", "#EXTINF:-1,B", "http://h/2"], ["B|||http://h/2"]],
  ["an address without a title", ["http://h/dir/1.ts"], ["1.ts|||http://h/dir/1.ts"]],
  ["a script", ["#EXTINF:-1,A", "javascript:alert(1)", "#EXTINF:-1,B", "http://h/2"], ["B|||http://h/2"]],
  ["markup between", ["#EXTINF:-1,A", "<br />", "#EXTINF:-1,B", "http://h/2"], ["B|||http://h/2"]],
];

/** How a list begins. */
const BEGINNINGS = ["#EXTM3U\n", "\uFEFF#EXTM3U\n", '#EXTM3U url-tvg="http://g/"\n', "# x\n\n#EXTM3U\n"];
const LINE_ENDS = ["\n", "\r\n", "\r"];

async function read(text: string, chunkBytes: number): Promise<string[]> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, at += chunkBytes));
    },
  });
  const entries: string[] = [];
  for await (const event of readM3u(stream, { baseUrl: "http://base/" })) {
    if (event.kind !== "entry") continue;
    const { title, attributes, url } = event.entry;
    entries.push([title, groupOf(event.entry), attributes["tvg-id"] ?? "", url].join("|"));
  }
  return entries;
}

test("readM3u() reads each shape of entry, however the list begins and its lines end", async () => {
  let lists = 0;
  for (const [what, lines, entries] of SHAPES) {
    for (const beginning of BEGINNINGS) {
      for (const end of LINE_ENDS) {
        const text = (beginning + lines.join("\n") + "\n").replaceAll("\n", end);
        assertEquals(await read(text, lists++ % 2 === 0 ? 5 : 1000), entries, `${what}: ${JSON.stringify(text)}`);
      }
    }
  }
});
