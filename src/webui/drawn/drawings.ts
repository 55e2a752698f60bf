/**
 * Subtitles that the page draws over a video. Each is a text track of the video without cues, so that menus list it and turn
 * it on and off as any other; while it is on, a layer draws it.
 */
import { type Layer, pgsLayer } from "./pgs-layer.ts";

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
const LAYERS = { pgs: pgsLayer };
/** How a form is called, beside the name of the track: files have the same subtitles in several. */
const FORM_NAMES = { pgs: "PGS" };

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
  const known = list.tracks.flatMap(({ number, form, name, language }) => {
    if (!(form in LAYERS)) return [];
    const element = document.createElement("track");
    Object.assign(element, {
      kind: "subtitles",
      label: `${name} (${FORM_NAMES[form as keyof typeof LAYERS]})`,
      srclang: language ?? "",
    });
    const open = () => LAYERS[form as keyof typeof LAYERS](video, container, `${base}d${number}`, list.starts_ms);
    video.append(element);
    return [{ element, open }];
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
    for (const { element } of known) element.remove();
    container.remove();
  }, { once: true });
}
