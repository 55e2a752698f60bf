/** Kodi with inputstream.adaptive as a player of the table. It shows its windows to a screen in memory. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { start } from "../../test/support/process.ts";
import { until } from "../../test/support/until.ts";
import { listen, stop } from "../../test/support/web.ts";
import { FILM_S } from "./films.ts";
import type { Outcome, Player } from "./players.ts";

/** Where Debian has the program itself; the command `kodi` is a script that starts it again whenever it ends. */
const KODI = "/usr/lib/x86_64-linux-gnu/kodi/kodi.bin";
const READER = "inputstream.adaptive";
const START_MS = 90_000;
/** From opening a film to its end, ms. */
const PLAY_MS = 90_000;

/** A Kodi, which is started for a film if it does not run. */
export interface Kodi {
  readonly play: Player;
  close(): Promise<void>;
}

/** What answers as long as it runs. */
interface Running {
  // deno-lint-ignore no-explicit-any -- what Kodi answers
  ask(method: string, params?: Record<string, unknown>): Promise<any>;
  close(): Promise<void>;
}

/** Starts it with `home` as its home folder; `ended` is called when it has ended. */
async function startKodi(home: string, ended: () => void): Promise<Running> {
  const free = createServer();
  const port = await listen(free);
  await stop(free);
  const url = `http://127.0.0.1:${port}/jsonrpc`;
  const settings: Record<string, string> = {
    "services.webserver": "true",
    "services.webserverport": String(port),
    "services.webserverauthentication": "false",
    "services.esenabled": "false",
    "services.zeroconf": "false",
  };
  const fields = Object.entries(settings).map(([id, value]) => `<setting id="${id}">${value}</setting>`);
  await mkdir(`${home}/.kodi/userdata`, { recursive: true });
  await writeFile(`${home}/.kodi/userdata/guisettings.xml`, `<settings version="2">${fields.join("")}</settings>`);
  // A sound device that takes everything.
  await writeFile(`${home}/.asoundrc`, "pcm.!default { type null }\nctl.!default { type null }\n");
  const screen = start("Xvfb", ["-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp"]);
  const [display] = await screen.line(/^\d+$/);
  const kodi = start(KODI, ["--standalone", "--windowing=x11"], {
    env: { HOME: home, DISPLAY: `:${display}`, LIBGL_ALWAYS_SOFTWARE: "1", KODI_AE_SINK: "ALSA" },
  });
  const close = async () => {
    await kodi.stop();
    await screen.stop();
  };
  const ask: Running["ask"] = async (method, params = {}) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
    return (await response.json()).result;
  };
  try {
    await until("Kodi serves", async () => (await fetch(url).catch(() => null))?.ok === true, START_MS);
    await ask("Addons.SetAddonEnabled", { addonid: READER, enabled: true });
    const found = await ask("Addons.GetAddonDetails", { addonid: READER, properties: ["enabled"] });
    // Without it Kodi plays all the same, by a reader of its own that lists no texts.
    if (found?.addon?.enabled !== true) throw new Error(`Kodi lacks ${READER}: install kodi-inputstream-adaptive`);
  } catch (error) {
    await close();
    throw error;
  }
  kodi.exited.then(() => screen.stop()).then(ended);
  return { ask, close };
}

/** Kodi with `home` as its home folder. */
export function kodiIn(home: string): Kodi {
  let running: Promise<Running> | null = null;
  const log = () => readFile(`${home}/.kodi/temp/kodi.log`, "utf8").catch(() => "");
  const play: Player = async ({ url: address, folder }): Promise<Outcome> => {
    const link = `${folder}/film.strm`;
    const properties = [
      `inputstream=${READER}`,
      `${READER}.manifest_type=hls`,
      "mimetype=application/vnd.apple.mpegurl",
    ];
    await writeFile(link, [...properties.map((one) => `#KODIPROP:${one}`), address, ""].join("\n"));
    const { ask } = await (running ??= startKodi(home, () => running = null));
    const before = (await log()).length;
    await ask("Player.Open", { item: { file: link } });
    const wanted = ["time", "audiostreams", "currentaudiostream", "videostreams", "subtitles"];
    let furthestS = 0;
    let sounds = 0;
    let pictures = 0;
    let texts = 0;
    let hasBegun = false;
    await until("Kodi has played it", async () => {
      const [player] = await ask("Player.GetActivePlayers") ?? [];
      if (player === undefined) {
        return hasBegun ||
          / error <general>: .*(?:CVideoPlayer|playback|OpenInputStream|Playlist)/i.test((await log()).slice(before));
      }
      hasBegun = true;
      const found = await ask("Player.GetProperties", { playerid: player.playerid, properties: wanted });
      if (!found) return false;
      const { time, audiostreams, videostreams, subtitles } = found;
      furthestS = Math.max(furthestS, time.minutes * 60 + time.seconds + time.milliseconds / 1000);
      sounds = Math.max(sounds, audiostreams.length);
      pictures = Math.max(pictures, videostreams.length);
      if (texts === 0 && subtitles.length > 0) {
        await ask("Player.SetSubtitle", { playerid: player.playerid, subtitle: 0, enable: true });
      }
      texts = Math.max(texts, subtitles.length);
      return false;
    }, PLAY_MS).catch((error: Error) => {
      // It may wait forever for a stream that it does not decode.
      if (!error.message.startsWith("not within")) throw error;
    });
    if ((await ask("Player.GetActivePlayers")).length > 0) await ask("Player.Stop", { playerid: 1 });
    const said = (await log()).slice(before);
    const isPlayed = furthestS > FILM_S * 0.6;
    return {
      video: isPlayed && pictures > 0,
      audio: isPlayed && sounds > 0,
      text: texts > 0,
      words: /(?:AddOnLog|error <general>): ([^\n]*)/.exec(said)?.[1]?.slice(0, 120) ?? "",
    };
  };
  return {
    play,
    async close() {
      await (await running)?.close();
    },
  };
}
