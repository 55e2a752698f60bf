/** PGS over a video: a canvas in the place of the picture. */
import { type DisplaySet, pictureOf, readSup } from "./pgs.ts";
import { SegmentWindow } from "./window.ts";

/** Something that draws over a video. */
export interface Layer {
  /** Draws what is shown at this time; called for each frame. */
  draw(timeS: number): void;
  close(): void;
}

/** Draws the segments `${url}-N.sup` in `container`. */
export function pgsLayer(
  video: HTMLVideoElement,
  container: HTMLElement,
  url: string,
  startsMs: readonly number[],
): Layer {
  const canvas = document.createElement("canvas");
  canvas.className = "drawn-picture";
  container.append(canvas);
  let sets: readonly DisplaySet[] = [];
  let shown: DisplaySet | null = null;
  let screen = { width: 0, height: 0 };
  const place = () => {
    if (screen.width === 0 || video.videoWidth === 0) return;
    const [wide, high] = [video.clientWidth, video.clientHeight];
    const pictureWide = Math.min(wide, high * video.videoWidth / video.videoHeight);
    // Pictures without their black bars are less high than what is drawn over them; they are as wide.
    const drawnHigh = pictureWide * screen.height / screen.width;
    Object.assign(canvas.style, {
      left: `${video.offsetLeft + (wide - pictureWide) / 2}px`,
      top: `${video.offsetTop + (high - drawnHigh) / 2}px`,
      width: `${pictureWide}px`,
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
    const response = await fetch(`${url}-${n}.sup${onlyHere ? "?here=1" : ""}`, { signal });
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
