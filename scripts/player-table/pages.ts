/** What players in a browser make of a film: libraries of HLS, and the engine's own page. */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import type { PlayerPage } from "../../test/browser/support.ts";
import { TEXT } from "./films.ts";
import type { Outcome, Player } from "./players.ts";

/** How fast a film is played: its end is what is waited for. */
const PLAYBACK_RATE = 4;
/** Between two looks at a page, ms. */
const LOOK_EVERY_MS = 100;
/** A film has ended by then, ms: a busy machine takes a minute for its first picture. */
const PLAY_MS = 180_000;
/** A text that is not there so long after the film's end does not come any more, ms. */
const TEXT_WAIT_MS = 15_000;

/** What a page keeps of its video. */
interface Seen {
  /** What the player said when it gave up. */
  readonly faults: string[];
  endedAtMs: number | null;
  text: boolean;
}

/** Runs in a page before its own scripts: watches the video that will be there. */
function watch(rate: number): void {
  const seen: Seen = { faults: [], endedAtMs: null, text: false };
  Object.assign(globalThis, { seen });
  // These events do not bubble.
  addEventListener("play", ({ target }) => (target as HTMLVideoElement).playbackRate = rate, true);
  addEventListener("ended", (event) => {
    seen.endedAtMs = performance.now();
    // The engine's page would go on with the next film.
    event.stopPropagation();
  }, true);
}

/** Runs in a page: what came of its film, null if that is not known yet. */
function look([wanted, textWaitMs]: readonly [string, number]): Outcome | null {
  // deno-lint-ignore no-explicit-any -- `watch` put it there
  const { seen } = globalThis as any as { seen: Seen };
  // deno-lint-ignore no-explicit-any -- Chromium's own counters
  const video = document.querySelector("video") as any;
  const said = document.querySelector(".status.trouble")?.textContent ?? "";
  // A film without sound is played.
  const refused = /no sound/.test(said) ? "" : said;
  // What follows the first fault follows from it.
  const words = seen.faults[0] ?? refused;
  if (words !== "") return { video: false, audio: false, text: false, words };
  if (video === null) return null;
  const texts = [...video.textTracks].filter(({ kind }) => kind === "subtitles" || kind === "captions");
  for (const track of texts) {
    if (track.mode === "disabled") track.mode = "showing";
    seen.text ||= [...track.cues ?? []].some((cue) => cue.text.includes(wanted));
  }
  if (seen.endedAtMs === null) return null;
  if (texts.length > 0 && !seen.text && performance.now() - seen.endedAtMs < textWaitMs) return null;
  return {
    video: video.currentTime > 4 && video.getVideoPlaybackQuality().totalVideoFrames > 50,
    audio: video.webkitAudioDecodedByteCount > 0,
    text: seen.text,
  };
}

/** Opens a page of its own beside `page`, has `play` begin the film in it, and waits for its outcome. */
async function watched({ page }: PlayerPage, url: string, play: (own: Page) => Promise<unknown>): Promise<Outcome> {
  const own = await page.context().browser()!.newPage();
  try {
    await own.addInitScript(watch, PLAYBACK_RATE);
    await own.goto(url);
    await play(own);
    const wait = { polling: LOOK_EVERY_MS, timeout: PLAY_MS };
    const outcome = await own.waitForFunction(look, [TEXT, TEXT_WAIT_MS] as const, wait);
    return await outcome.jsonValue() as Outcome;
  } finally {
    await own.close();
  }
}

function hlsJs(address: string): void {
  // deno-lint-ignore no-explicit-any -- the library, and what `watch` put there
  const { Hls, seen } = globalThis as any;
  const hls = new Hls({ enableWorker: false });
  // deno-lint-ignore no-explicit-any
  hls.on(Hls.Events.ERROR, (_: unknown, data: any) => data.fatal && seen.faults.push(data.details));
  hls.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, () => {
    hls.subtitleTrack = 0;
    hls.subtitleDisplay = true;
  });
  const video = document.querySelector("video")!;
  hls.loadSource(address);
  hls.attachMedia(video);
  video.play().catch(() => {});
}

async function shakaPlayer(address: string): Promise<void> {
  // deno-lint-ignore no-explicit-any -- the library, and what `watch` put there
  const { shaka, seen } = globalThis as any;
  const player = new shaka.Player();
  // deno-lint-ignore no-explicit-any
  const fail = (error: any) => seen.faults.push(`error ${error?.code ?? error}`);
  // deno-lint-ignore no-explicit-any
  player.addEventListener("error", ({ detail }: any) => fail(detail));
  const video = document.querySelector("video")!;
  try {
    await player.attach(video);
    await player.load(address);
    const [track] = player.getTextTracks();
    if (track !== undefined) {
      player.selectTextTrack(track);
      player.setTextTrackVisibility?.(true);
    }
    // If it is interrupted, the event above says why.
    video.play().catch(() => {});
  } catch (error) {
    fail(error);
  }
}

/** Names of the players in a browser. */
export const PAGES = ["hls.js", "page", "shaka-player"] as const;

/** The players in a browser; `shaka`: where the file of that one is, null: it is left out. */
export function pagePlayers(page: PlayerPage, shaka: string | null): Record<string, Player> {
  return {
    "hls.js": ({ url }) => watched(page, page.origin, (own) => own.evaluate(hlsJs, url)),
    page: ({ engineUrl, magnet, index }) => {
      const address = `${engineUrl}/#/play?${new URLSearchParams({ q: magnet, file: String(index) })}`;
      return watched(page, address, () => Promise.resolve());
    },
    ...shaka === null ? {} : {
      "shaka-player": ({ url }) =>
        watched(page, page.origin, async (own) => {
          await own.addScriptTag({ content: readFileSync(shaka, "utf8") });
          await own.evaluate(shakaPlayer, url);
        }),
    },
  };
}
