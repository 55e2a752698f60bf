/**
 * Players that we didn't write, and the page, play films of many codecs by HLS with renditions, or say why not: the most telling
 * cells of the table of players. `scripts/player-table.ts` runs all of it.
 */
import { chmod } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { makeFilm, nameOf, ROWS } from "../../scripts/player-table/films.ts";
import { pagePlayers } from "../../scripts/player-table/pages.ts";
import { cellOf, type Player, PROGRAMS } from "../../scripts/player-table/players.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { joinAsPlayer, openPlayerPage, type PlayerPage } from "./support.ts";

/** By film and player. */
const CELLS: Readonly<Record<string, Readonly<Record<string, string | RegExp>>>> = {
  "h264-aac-srt.mkv": { page: "plays", mpv: "plays", GStreamer: "plays" },
  "h264-ac3-ass.mkv": { "hls.js": "without sound", ffmpeg: "plays" },
  "h264-opus-srt.mkv": { "hls.js": "plays" },
  "h264-dts-pgs.mkv": { "hls.js": "without text" },
  "hevc-aac-tx3g.mp4": {
    page: /^no: This browser cannot decode the file \(HEVC \(H\.265\)\)\. VLC or mpv can/,
    "hls.js": "no: bufferAddCodecError",
    ffmpeg: "plays",
    mpv: "plays",
  },
  "av1-opus-srt.mkv": { page: "plays", "hls.js": "plays", ffmpeg: "plays", GStreamer: "plays" },
  "av1-dts-ass.mkv": { "hls.js": "plays", mpv: "plays" },
  "vp9-ac3-srt.mkv": { page: "plays", "hls.js": "plays" },
  "vp9-opus-none.webm": { ffmpeg: "plays" },
};
const FILMS = Object.keys(CELLS);

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
let seeder: SeededFiles;
let player: PlayerPage;
let served: ServedEngine;
let players: Readonly<Record<string, Player>>;

const rowOf = (film: string) => ROWS.find((row) => nameOf(row) === film)!;

before(async () => {
  home = await temporaryDirectory();
  await chmod(home.path, 0o777);
  const files = [];
  for (const film of FILMS) files.push({ path: film, bytes: await makeFilm(rowOf(film), home.path) });
  seeder = await seedFiles(files, { name: "table" });
  player = await openPlayerPage(() => false);
  served = await serveEngine({ allowOrigins: [player.origin] });
  await joinAsPlayer(served.url, seeder.magnet);
  players = { ...PROGRAMS, ...pagePlayers(player, null) };
});
after(async () => {
  await player?.close();
  await served?.close();
  await seeder?.close();
  await home?.remove();
});

for (const [film, cells] of Object.entries(CELLS)) {
  test(`${film} in ${Object.keys(cells).join(", ")}`, async () => {
    const index = FILMS.indexOf(film);
    const query = new URLSearchParams({ magnet: seeder.magnet, _idx: String(index), pid: "table", renditions: "1" });
    const start = await fetch(`${served.url}/engine/manifest.m3u8?${query}&format=json&use_api_stop=1`);
    const { response, error } = await start.json();
    assertEquals(error, null);
    const offer = {
      url: response.playback_url,
      engineUrl: served.url,
      magnet: seeder.magnet,
      index,
      folder: home.path,
    };
    const found = await Promise.all(Object.keys(cells).map((name) => players[name]!(offer)));
    for (const [i, [name, wanted]] of Object.entries(cells).entries()) {
      const cell = cellOf(rowOf(film), found[i]!);
      if (typeof wanted === "string") assertEquals(cell, wanted, name);
      else assertMatch(cell, wanted, name);
    }
  });
}
