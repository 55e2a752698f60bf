/**
 * Subtitles that the page draws over a video. Each is a text track of the video without cues, so that menus list it and turn
 * it on and off as any other; while it is on, a layer draws it.
 */
import { text } from "../texts.ts";
import { assLayer } from "./ass-layer.ts";
import type { Layer, LayerTold } from "./layer.ts";
import { pgsLayer } from "./pgs-layer.ts";

interface DrawnList {
  readonly tracks: readonly {
    readonly number: number;
    readonly form: "pgs" | "ass";
    readonly name: string;
    readonly language: string | null;
  }[];
  readonly starts_ms: readonly number[];
}

/** What makes a layer of each form. */
const LAYERS = { pgs: pgsLayer, ass: assLayer };
/** How a form is called, beside the name of the track: files have the same subtitles in several. */
const FORM_NAMES = { pgs: "PGS", ass: "ASS" };
/** Words about a layer stay this long, ms. */
const WORDS_MS = 10_000;

/** Lists the drawn subtitles of the session that plays at `playbackUrl`, and draws those that are turned on. Returns what ends it. */
export function attachDrawings(video: HTMLVideoElement, playbackUrl: string): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  const base = playbackUrl.replace(/\/m\/([^/?]+)\/([^/?]+)\.m3u8.*$/, "/s/$1/$2/");
  const run = async () => {
    const response = await fetch(`${base}drawn.json`, { signal });
    if (!response.ok) return;
    const list: DrawnList = await response.json();
    if (!signal.aborted && list.tracks.length > 0) listTracks(video, base, list, signal);
  };
  // Without the list the film has its texts.
  run().catch(() => {});
  return () => ending.abort();
}

function listTracks(video: HTMLVideoElement, base: string, list: DrawnList, signal: AbortSignal): void {
  const container = document.createElement("div");
  container.className = "drawn";
  const screen = video.parentElement!;
  (screen.querySelector(".drawings") ?? screen).append(container);
  const words = new Words(container);
  const known = list.tracks.map(({ number, form, name, language }) => {
    const element = document.createElement("track");
    Object.assign(element, { kind: "subtitles", label: `${name} (${FORM_NAMES[form]})`, srclang: language ?? "" });
    const told: LayerTold = {
      failed() {
        words.show(text("drawnAsText"));
        element.track.mode = "disabled";
        const written = [...video.textTracks].find(({ label }) => label === name);
        if (written !== undefined) written.mode = "showing";
      },
      leftOut: (what, count) => words.show(text(what === "fonts" ? "fontsLeftOut" : "linesLeftOut", count)),
    };
    const open = () => LAYERS[form](video, container, { base, number, startsMs: list.starts_ms }, told);
    video.append(element);
    return { element, open };
  });
  let shown: HTMLTrackElement | null = null;
  let layer: Layer | null = null;
  let frame = 0;
  const draw = () => {
    layer?.draw(video.currentTime);
    frame = requestAnimationFrame(draw);
  };
  const look = () => {
    const found = known.find(({ element }) => element.track.mode === "showing") ?? null;
    if (found?.element === (shown ?? undefined)) return;
    cancelAnimationFrame(frame);
    layer?.close();
    shown = found?.element ?? null;
    layer = found?.open() ?? null;
    if (layer !== null) draw();
  };
  video.textTracks.addEventListener("change", look);
  look();
  signal.addEventListener("abort", () => {
    video.textTracks.removeEventListener("change", look);
    cancelAnimationFrame(frame);
    layer?.close();
    words.close();
    for (const { element } of known) element.remove();
    container.remove();
  }, { once: true });
}

/** A line over the picture, for a while. */
class Words {
  readonly #container: HTMLElement;
  #shown: HTMLElement | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(container: HTMLElement) {
    this.#container = container;
  }

  show(words: string): void {
    this.close();
    const line = document.createElement("p");
    line.className = "drawn-words";
    line.setAttribute("role", "status");
    line.textContent = words;
    this.#container.append(line);
    this.#shown = line;
    this.#timer = setTimeout(() => this.close(), WORDS_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#shown?.remove();
    this.#shown = null;
  }
}
