/**
 * Prints the table of players and films: each plays the HLS of each film, with its renditions, from an engine that fetches it from
 * another one. Needs ffmpeg, mpv, VLC, GStreamer, Chromium, and Kodi with inputstream.adaptive.
 *
 *     deno run -A scripts/player-table.ts [--shaka FILE] [--only PLAYER,…] [WORD…]
 *
 * FILE is shaka-player.compiled.js of the npm package shaka-player. Words choose rows by parts of their names.
 */
import process from "node:process";
import { chmod } from "node:fs/promises";
import { openPlayerPage } from "../test/browser/support.ts";
import { seedFiles, serveEngine, temporaryDirectory } from "../test/support/engine.ts";
import { makeFilm, nameOf, ROWS } from "./player-table/films.ts";
import { kodiIn } from "./player-table/kodi.ts";
import { pagePlayers, PAGES } from "./player-table/pages.ts";
import { cellOf, type Player, PROGRAMS } from "./player-table/players.ts";

const args = process.argv.slice(2);
/** The value of a flag, which is taken out. */
const flag = (name: string) => args.includes(name) ? args.splice(args.indexOf(name), 2)[1] ?? null : null;
const shaka = flag("--shaka");
const only = flag("--only")?.split(",");
const isWanted = (name: string) => only?.includes(name) ?? true;
const wanted = (players: Readonly<Record<string, Player>>) =>
  Object.entries(players).filter(([name]) => isWanted(name));
const rows = ROWS.filter((row) => args.length === 0 || args.some((word) => nameOf(row).includes(word)));
const home = await temporaryDirectory();
await chmod(home.path, 0o777);
const files: { path: string; bytes: Uint8Array }[] = [];
for (const row of rows) files.push({ path: nameOf(row), bytes: await makeFilm(row, home.path) });
const seeder = await seedFiles(files, { name: "table" });
// Without a browser where none is asked for.
const page = PAGES.some(isWanted) ? await openPlayerPage(() => false) : null;
const engine = await serveEngine({ allowOrigins: page === null ? [] : [page.origin] });
const kodi = isWanted("Kodi") ? kodiIn(home.path) : null;
const programs = wanted({ ...PROGRAMS, ...kodi === null ? {} : { Kodi: kodi.play } });
const inThePage = page === null ? [] : wanted(pagePlayers(page, shaka));
const players = [...programs, ...inThePage].map(([name]) => name);

try {
  console.log(`| film | ${players.join(" | ")} |\n| --- |${" --- |".repeat(players.length)}`);
  for (const [n, row] of rows.entries()) {
    const query = new URLSearchParams({ magnet: seeder.magnet, _idx: String(n), pid: "table", renditions: "1" });
    const start = await fetch(`${engine.url}/engine/manifest.m3u8?${query}&format=json&use_api_stop=1`);
    const { response, error } = await start.json();
    const nothing = { video: false, audio: false, text: false };
    const cell = async ([name, play]: readonly [string, Player]) => {
      if (error !== null) return cellOf(row, { ...nothing, words: error });
      const { magnet } = seeder;
      const outcome = play({
        ...{ url: response.playback_url, engineUrl: engine.url, magnet, index: n, folder: home.path },
      });
      return cellOf(
        row,
        await outcome.catch((failure) => ({ ...nothing, words: `${name}: ${failure}`.slice(0, 200) })),
      );
    };
    // Programs play beside each other, and the page one after the other.
    const inPage = (async () => {
      const cells: string[] = [];
      for (const player of inThePage) cells.push(await cell(player));
      return cells;
    })();
    const cells = [...await Promise.all(programs.map(cell)), ...await inPage];
    console.log(`| ${row.slice(0, 3).join(" · ")} (${row[3]}) | ${cells.join(" | ")} |`);
  }
} finally {
  await kodi?.close();
  await page?.close();
  await engine.close();
  await seeder.close();
  await home.remove();
}
