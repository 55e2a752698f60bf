/** PGS over a video: a canvas in the place of the picture. */
import type { Layer, LayerSource } from "./layer.ts";
import { type DisplaySet, pictureOf, readSup } from "./pgs.ts";
import { placeOf } from "./picture-place.ts";
import { SegmentWindow } from "./window.ts";

/** Draws the pictures `number` of `base` in `container`. */
export function pgsLayer(
  video: HTMLVideoElement,
  container: HTMLElement,
  { base, number, startsMs }: LayerSource,
): Layer {
  const canvas = document.createElement("canvas");
  canvas.className = "drawn-picture";
  container.append(canvas);
  let sets: readonly DisplaySet[] = [];
  let shown: DisplaySet | null = null;
  let screen = { width: 0, height: 0 };
  const place = () => {
    const picture = placeOf(video);
    if (screen.width === 0 || picture === null) return;
    const { left, top, width, height } = picture;
    // Pictures without their black bars are less high than what is drawn over them; they are as wide.
    const drawnHigh = width * screen.height / screen.width;
    Object.assign(canvas.style, {
      left: `${left}px`,
      top: `${top + (height - drawnHigh) / 2}px`,
      width: `${width}px`,
      height: `${drawnHigh}px`,
    });
  };
  const show = (n: number) => {
    const context = canvas.getContext("2d")!;
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (n < 0) return;
    const { width, height, objects } = pictureOf(sets, n);
    if (objects.length === 0) return;
    if (screen.width !== width || screen.height !== height) {
      screen = { width, height };
      Object.assign(canvas, screen);
      place();
    }
    for (const { x, y, width, height, rgba } of objects) {
      if (width === 0) continue;
      const object = new OffscreenCanvas(width, height);
      object.getContext("2d")!.putImageData(new ImageData(rgba, width, height), 0, 0);
      context.drawImage(object, x, y);
    }
  };
  const load = async (n: number, onlyHere: boolean, signal: AbortSignal) => {
    const response = await fetch(`${base}d${number}-${n}.sup${onlyHere ? "?here=1" : ""}`, { signal });
    if (!response.ok) throw new Error(response.statusText);
    return readSup(new Uint8Array(await response.arrayBuffer()));
  };
  const segments = new SegmentWindow(startsMs, load, (files) => {
    sets = files.flat();
    shown = null;
  });
  const watching = new ResizeObserver(place);
  watching.observe(video);
  video.addEventListener("resize", place);
  return {
    draw(timeS) {
      segments.at(timeS);
      let n = sets.length - 1;
      while (n >= 0 && sets[n]!.atS > timeS) n--;
      const now = sets[n] ?? null;
      if (now === shown && shown !== null) return;
      shown = now;
      show(n);
    },
    close() {
      segments.close();
      watching.disconnect();
      video.removeEventListener("resize", place);
      canvas.remove();
    },
  };
}
