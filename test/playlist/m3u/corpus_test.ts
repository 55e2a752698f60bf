/** Shapes of lists as providers write them, each in all line ends, chunks and beginnings: what becomes of their entries. */
import { test } from "node:test";
import { assertEquals, assertNotEquals } from "@std/assert";
import { groupOf } from "../../../src/playlist/entry.ts";
import { readM3u } from "../../../src/playlist/m3u/read.ts";
import { SHAPES } from "./shapes.ts";

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

test("a shape is said to be read otherwise only where a player's titles or groups differ from ours", () => {
  for (const [what, , entries, { kodi, vlc } = {}] of SHAPES) {
    const ours = entries.map((entry) => entry.split("|"));
    if (kodi !== undefined) assertNotEquals(kodi, ours.map(([title, group]) => `${title}|${group}`), what);
    if (vlc !== undefined) assertNotEquals(vlc, ours.map(([title]) => title!), what);
  }
});
