/** Numbers of files, lists and the memory of the front that shows a TorrServer. */
import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { comparePaths, numberedFiles } from "../../../src/http/fronts/torrserver/file-ids.ts";
import { TorrServerState, type TorrServerTorrent } from "../../../src/http/fronts/torrserver/kept.ts";
import { torrentLines } from "../../../src/http/fronts/torrserver/m3u.ts";
import { FrontStates } from "../../../src/http/fronts/states.ts";
import type { Metainfo } from "../../../src/metainfo/types.ts";
import type { FilePort } from "../../../src/ports.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const HASH = "ab".repeat(20);
const silent = { log: () => {}, child: () => silent };

function torrentOf(paths: readonly string[]): Metainfo {
  const files = paths.map((path, index) => ({
    ...{ index, path, name: path.slice(path.lastIndexOf("/") + 1), sizeBytes: 10, offset: 10 * index },
    padding: path.startsWith(".pad/"),
  }));
  return { name: "Show", infohashHex: HASH, files, multiFile: true } as unknown as Metainfo;
}

function entry(hash: string, more: Partial<TorrServerTorrent> = {}): TorrServerTorrent {
  return {
    ...{
      hash,
      title: hash,
      category: "",
      poster: "",
      data: "",
      magnet: null,
      addedS: 1,
      sizeBytes: 0,
      isSaved: false,
      isLocal: true,
    },
    ...more,
  };
}

test("comparePaths() puts numbers in order of their value, before other characters", () => {
  const sorted = (paths: readonly string[]) => [...paths].sort(comparePaths);
  assertEquals(sorted(["E10", "E2", "E1", "E02b"]), ["E1", "E2", "E02b", "E10"]);
  assertEquals(sorted(["a.mkv", "a1.mkv", "A.mkv", "a-1.mkv"]), ["A.mkv", "a1.mkv", "a-1.mkv", "a.mkv"]);
  assertEquals(sorted(["S02/E01.mkv", "S01/E02.mkv", "S01/E01.srt"]), ["S01/E01.srt", "S01/E02.mkv", "S02/E01.mkv"]);
});

test("numberedFiles() counts padding but does not list it, and keeps the places in the torrent", () => {
  const files = numberedFiles(torrentOf(["b.mkv", ".pad/6", "a.mkv"]));
  assertEquals(files.map(({ id, path, index }) => [id, path, index]), [[2, "Show/a.mkv", 2], [3, "Show/b.mkv", 0]]);
});

test("torrentLines() names films with the texts and sound that belong to them, and nothing that is neither", () => {
  const lines = torrentLines("http://tv", HASH, torrentOf(["1.mkv", "1.de.srt", "2.mkv", "info.nfo", "disc.iso"]), 2);
  const url = (name: string, id: number) => `http://tv/stream/${name}?link=${HASH}&index=${id}&play`;
  assertEquals(lines, [
    ...["#EXTINF:0,1.mkv", `#EXTVLCOPT:input-slave=${url("1.de.srt", 1)}#`, url("1.mkv", 2)],
    ...["#EXTINF:0,2.mkv", url("2.mkv", 3)],
    ...["#EXTINF:0,disc.iso", url("disc.iso", 4)],
  ]);
});

test("TorrServerState.put() lets unsaved torrents make room, and refuses when saved ones fill the list", async () => {
  const place = { files: {} as FilePort, stateDir: null, clock: new FakeClock(), log: silent };
  const state = await TorrServerState.open(new FrontStates(place));
  const hash = (n: number) => n.toString(16).padStart(40, "0");
  for (let n = 0; n < 999; n++) state.put(entry(hash(n), { isSaved: true }));
  state.put(entry(hash(2000)));
  state.put(entry(hash(2001)));
  assertEquals([state.torrents().length, state.torrent(hash(2000))], [1000, undefined]);
  state.put(entry(hash(2002), { isSaved: true }));
  assertThrows(() => state.put(entry(hash(2003), { isSaved: true })), Error, "the list of torrents is full");
  assertThrows(() => state.put(entry(hash(1), { data: "x".repeat(200_000) })), Error, "data has more than");
  assertEquals(state.torrents().length, 1000);
});

test("FrontStates.open() returns what was kept, and begins with nothing when that cannot be read", async () => {
  const kept = new Map<string, Uint8Array>();
  const files = {
    makeDirectory: () => Promise.resolve(),
    writeFile: (path: string, bytes: Uint8Array) => Promise.resolve(void kept.set(path, bytes)),
    readFile: (path: string) => Promise.resolve(kept.get(path) ?? new TextEncoder().encode("{")),
  } as unknown as FilePort;
  const place = () => new FrontStates({ files, stateDir: "/state", clock: new FakeClock(), log: silent });
  const states = place();
  const first = await TorrServerState.open(states);
  first.put(entry(HASH, { isSaved: true, data: '{"a":1}' }));
  first.put(entry("cd".repeat(20)));
  first.setViewed({ hash: HASH, fileId: 3, timecode: 12 });
  await states.close();
  assertEquals([...kept.keys()], ["/state/fronts/torrserver.json"]);
  const second = await TorrServerState.open(place());
  assertEquals(second.torrents().map(({ hash, data }) => [hash, data]), [[HASH, '{"a":1}']]);
  assertEquals(second.viewed(), [{ hash: HASH, fileId: 3, timecode: 12 }]);
});
