/** What the page draws and names: pieces, codecs, and where the arrow keys of a remote lead. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { codecNames } from "../../src/webui/codecs.ts";
import { columnsPath, waterPath } from "../../src/webui/pieces.ts";
import { withPlayed } from "../../src/webui/recent.ts";
import { distance } from "../../src/webui/spatial.ts";

test("waterPath() draws one step for each run of cells of one level", () => {
  assertEquals(waterPath("9900"), "M0 9L0 0H2L2 9H4V9Z");
  assertEquals(waterPath("5"), "M0 9L0 4H1V9Z");
  assertEquals(waterPath(""), "M0 9V9Z");
});

test("columnsPath() draws a column for each cell", () => {
  assertEquals(columnsPath([0, 7]), "M0 0h1v9h-1zM7 0h1v9h-1z");
  assertEquals(columnsPath([]), "");
});

test("codecNames() names the codecs that a browser refuses, each once, and keeps unknown ids", () => {
  assertEquals(codecNames('video/mp4; codecs="hvc1.1.6.L93.90,mp4a.40.2"'), "HEVC (H.265), AAC");
  assertEquals(codecNames("audio/mp4;codecs=ac-3"), "Dolby Digital (AC-3)");
  assertEquals(codecNames("avc1.42E01E,avc1.640028"), "H.264");
  assertEquals(codecNames("xyz1"), "xyz1");
  assertEquals(codecNames(""), "");
});

const box = (left: number, top: number, width = 10, height = 10) => ({
  left,
  top,
  right: left + width,
  bottom: top + height,
});

test("distance() prefers elements straight ahead, and ignores those behind or at the same place", () => {
  const from = box(100, 100);
  assertEquals(distance(from, box(120, 100), "ArrowRight"), 10);
  assertEquals(distance(from, box(120, 100), "ArrowLeft"), null);
  assertEquals(distance(from, box(100, 130), "ArrowDown"), 20);
  assertEquals(distance(from, box(130, 130), "ArrowDown"), 20 + 2 * 20);
  assertEquals(distance(from, box(95, 95, 40, 40), "ArrowRight"), null);
  assertEquals(distance(from, box(110, 100), "ArrowRight"), 0);
});

test("withPlayed() keeps one entry per torrent, the newest first, and no place near the beginning or the end", () => {
  const played = (infohash: string, atS: number) => ({
    infohash,
    query: "q",
    file: 0,
    title: "t",
    atS,
    durationS: 100,
  });
  const places = (list: readonly { infohash: string; atS: number }[]) =>
    list.map(({ infohash, atS }) => infohash + atS);
  const list = [played("a", 50), played("b", 60)];
  assertEquals(places(withPlayed(list, played("b", 65.5))), ["b65", "a50"]);
  assertEquals(places(withPlayed(list, played("c", 29))), ["c0", "a50", "b60"]);
  assertEquals(places(withPlayed(list, played("c", 71))), ["c0", "a50", "b60"]);
  const many = Array.from({ length: 40 }, (_, n) => n).reduce<ReturnType<typeof withPlayed>>(
    (before, n) => withPlayed(before, played(`${n}:`, 50)),
    [],
  );
  assertEquals([many.length, many[0]!.infohash], [24, "39:"]);
});

test("withPlayed() keeps the file that follows once one was seen to its end, and a still until there is another file", () => {
  const film = { infohash: "a", query: "q", file: 0, title: "Part 1", durationS: 100 };
  const next = { file: 1, title: "Part 2" };
  const [left] = withPlayed([], { ...film, atS: 50, next, still: "data:1" });
  assertEquals([left!.atS, left!.next, left!.still], [50, undefined, "data:1"]);
  const seen = withPlayed([left!], { ...film, atS: 80, next });
  assertEquals([seen.length, seen[0]!.atS, seen[0]!.next, seen[0]!.still], [1, 0, next, "data:1"]);
  assertEquals(withPlayed([], { ...film, atS: 80 })[0]!.next, undefined);
  const [other] = withPlayed(seen, { ...film, file: 1, title: "Part 2", atS: 40 });
  assertEquals([other!.next, other!.still], [undefined, undefined]);
});
