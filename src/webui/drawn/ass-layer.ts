/** Scripts (ASS, SSA) over a video: libass in a worker draws them on a canvas in the place of the picture. */
import { BASE } from "../engine.ts";
import type { AssNews, AssOrder } from "./ass-messages.ts";
import type { Layer, LayerSource, LayerTold } from "./layer.ts";
import { placeOf } from "./picture-place.ts";
import { linesNow, readLines, type ScriptLine } from "./script-lines.ts";
import { SegmentWindow } from "./window.ts";

/**
 * The library may take this long to load, and a picture to be drawn, ms. A picture takes some milliseconds, and on a machine
 * without a free core a second. A script that needs longer is no script for people.
 */
const OPEN_TIMEOUT_MS = 60_000;
const DRAW_TIMEOUT_MS = 10_000;
/** Largest canvas, px. */
const MAX_WIDTH = 1920;
const MAX_HEIGHT = 1080;
/** Bytes of fonts that are loaded: as many as the engine offers. */
const MAX_FONTS_BYTES = 64 * 1024 * 1024;

interface FontList {
  readonly fonts: readonly { readonly number: number; readonly size_bytes: number }[];
  readonly left_out: number;
}

/** Draws the script `number` of `base` in `container`. */
export function assLayer(
  video: HTMLVideoElement,
  container: HTMLElement,
  { base, number, startsMs }: LayerSource,
  told: LayerTold,
): Layer {
  const ending = new AbortController();
  const { signal } = ending;
  const canvas = document.createElement("canvas");
  canvas.className = "drawn-picture";
  container.append(canvas);
  let worker: Worker | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isBusy = true;
  let asked = "";
  let script = 0;
  let head = "";
  let lines: readonly ScriptLine[] = [];
  let atS = 0;

  const fail = () => {
    if (signal.aborted) return;
    close();
    told.failed();
  };
  const order = (one: AssOrder, given: Transferable[] = []) => worker?.postMessage(one, given);
  const waitFor = (ms: number) => {
    isBusy = true;
    timer = setTimeout(fail, ms);
  };
  const get = async (name: string) => {
    const response = await fetch(`${base}${name}`, { signal });
    if (!response.ok) throw new Error(response.statusText);
    return response;
  };
  const setScript = () => {
    script++;
    order({ kind: "script", script: `${head}${lines.map(({ line }) => line).join("\n")}\n` });
  };
  const segments = new SegmentWindow(
    startsMs,
    async (n, onlyHere, loading) => {
      const response = await fetch(`${base}d${number}-${n}.ass${onlyHere ? "?here=1" : ""}`, { signal: loading });
      if (!response.ok) throw new Error(response.statusText);
      return readLines(await response.text());
    },
    (files) => {
      const now = linesNow(files, lines, atS);
      if (now.leftOut > 0) told.leftOut("lines", now.leftOut);
      lines = now.lines;
      setScript();
    },
  );
  const loadFonts = async () => {
    const { fonts, left_out }: FontList = await (await get("fonts.json")).json();
    let left = MAX_FONTS_BYTES;
    let leftOut = left_out;
    for (const font of fonts) {
      if (font.size_bytes > left) {
        leftOut++;
        continue;
      }
      left -= font.size_bytes;
      const bytes = await (await get(`font-${font.number}`)).arrayBuffer();
      script++;
      order({ kind: "font", bytes }, [bytes]);
    }
    if (leftOut > 0) told.leftOut("fonts", leftOut);
  };
  const open = async () => {
    head = await (await get(`d${number}.ass`)).text();
    if (signal.aborted) return;
    worker = new Worker(`${BASE}/webui/ass-worker.js`, { type: "module" });
    worker.onerror = fail;
    worker.onmessage = ({ data }: MessageEvent<AssNews>) => {
      clearTimeout(timer);
      if (data.kind === "failed") return fail();
      isBusy = false;
    };
    const own = canvas.transferControlToOffscreen();
    const urls = { libraryUrl: `${BASE}/webui/libass.wasm`, fontUrl: `${BASE}/webui/last-font.woff2` };
    waitFor(OPEN_TIMEOUT_MS);
    order({ kind: "open", canvas: own, ...urls }, [own]);
    setScript();
    // Without them it is drawn in the font of last resort.
    loadFonts().catch(() => {});
  };
  const close = () => {
    ending.abort();
    clearTimeout(timer);
    segments.close();
    worker?.terminate();
    worker = null;
    canvas.remove();
  };
  open().catch(fail);
  return {
    draw(timeS) {
      if (signal.aborted) return;
      atS = timeS;
      segments.at(timeS);
      const place = placeOf(video);
      if (isBusy || place === null) return;
      const { left, top, width, height } = place;
      const times = Math.min(devicePixelRatio, MAX_WIDTH / width, MAX_HEIGHT / height);
      const [wide, high] = [Math.round(width * times), Math.round(height * times)];
      const wish = [timeS, wide, high, left, top, script].join();
      if (wish === asked || wide === 0 || high === 0) return;
      asked = wish;
      Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
      waitFor(DRAW_TIMEOUT_MS);
      const { videoWidth, videoHeight } = video;
      order({ kind: "draw", timeS, width: wide, height: high, video: [videoWidth, videoHeight] });
    },
    close,
  };
}
