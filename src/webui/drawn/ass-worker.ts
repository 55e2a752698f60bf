/**
 * Draws scripts with libass. It runs in a worker, which the page ends if a script is too much work, and which alone may
 * compile WebAssembly: its own content policy says so, and that of the page does not.
 */
import openLibrary from "jassub/dist/wasm/jassub-worker.js";
import type { AssNews, AssOrder } from "./ass-messages.ts";
import type { AssImage, AssRenderer, Libass } from "./libass.ts";

/** Glyphs and megabytes of pictures that libass keeps. */
const MAX_GLYPHS = 2000;
const MAX_BITMAP_MB = 64;
/** Family of the font of last resort, as its file names it. */
const LAST_FAMILY = "liberation sans";
/** Pixels of all pictures of one moment together: ten screens of full HD. */
const MAX_PIXELS = 10 * 1920 * 1080;

/** What there is of a worker's own. */
interface WorkerSelf {
  onmessage: ((event: MessageEvent<AssOrder>) => void) | null;
  postMessage(news: AssNews): void;
  /** The library's memory, as jassub leaves it there. */
  readonly HEAPU8RAW: Uint8Array;
}
const self = globalThis as unknown as WorkerSelf;

/** Reads what the page names; jassub replaces the global one. */
const { fetch } = globalThis;

class Drawing {
  readonly #renderer: AssRenderer;
  readonly #malloc: (sizeBytes: number) => number;
  readonly #canvas: OffscreenCanvas;
  readonly #one = new OffscreenCanvas(1, 1);
  #size = "";
  #fonts = 0;
  /** Its script or its fonts are others than those of the last picture. */
  #isNew = true;

  private constructor(canvas: OffscreenCanvas, renderer: AssRenderer, malloc: (sizeBytes: number) => number) {
    this.#canvas = canvas;
    this.#renderer = renderer;
    this.#malloc = malloc;
  }

  static async open({ canvas, libraryUrl, fontUrl }: AssOrder & { kind: "open" }): Promise<Drawing> {
    // The library looks for its other half beside itself.
    globalThis.fetch = () => fetch(libraryUrl);
    const quiet = () => {};
    const options = { __url: libraryUrl, __out: quiet, __err: quiet };
    const { JASSUB, _malloc } = await openLibrary(options) as Libass;
    globalThis.fetch = fetch;
    const renderer = new JASSUB(canvas.width, canvas.height, LAST_FAMILY);
    // More would need memory that pages share, and with it that the page is isolated from others.
    renderer.setThreads(1);
    renderer.setMemoryLimits(MAX_GLYPHS, MAX_BITMAP_MB);
    const drawing = new Drawing(canvas, renderer, _malloc);
    drawing.addFont(await (await fetch(fontUrl)).arrayBuffer());
    return drawing;
  }

  addFont(bytes: ArrayBuffer): void {
    const at = this.#malloc(bytes.byteLength);
    // No memory is left: the script is drawn in the fonts that there are.
    if (at === 0) return;
    self.HEAPU8RAW.set(new Uint8Array(bytes), at);
    this.#renderer.addFont(`font-${this.#fonts++}`, at, bytes.byteLength);
    this.#renderer.reloadFonts();
    this.#isNew = true;
  }

  setScript(script: string): void {
    this.#renderer.createTrackMem(script);
    this.#isNew = true;
  }

  draw({ timeS, width, height, video }: AssOrder & { kind: "draw" }): void {
    const size = [width, height, ...video].join();
    if (size !== this.#size) {
      this.#size = size;
      Object.assign(this.#canvas, { width, height });
      this.#renderer.resizeCanvas(width, height, ...video);
      this.#isNew = true;
    }
    const images = this.#renderer.rawRender(timeS, Number(this.#isNew));
    this.#isNew = false;
    if (images === null) return;
    const context = this.#canvas.getContext("2d")!;
    context.clearRect(0, 0, width, height);
    let left = MAX_PIXELS;
    for (const image of images) {
      left -= image.w * image.h;
      if (left < 0) break;
      if (image.w > 0 && image.h > 0) this.#put(context, image);
    }
  }

  #put(context: OffscreenCanvasRenderingContext2D, { w, h, stride, color, bitmap, dst_x, dst_y }: AssImage): void {
    const data = new ImageData(w, h);
    const pixels = new Uint32Array(data.data.buffer);
    const covered = self.HEAPU8RAW;
    // Bytes of a pixel stand the other way around in the number.
    const colour = (color >>> 8 & 0xff) << 16 | (color >>> 16 & 0xff) << 8 | color >>> 24;
    const opacity = (255 - (color & 0xff)) / 255;
    for (let y = 0, to = 0; y < h; y++) {
      for (let at = bitmap + y * stride, end = at + w; at < end; at++, to++) {
        const coverage = covered[at]!;
        if (coverage !== 0) pixels[to] = Math.round(opacity * coverage) << 24 | colour;
      }
    }
    Object.assign(this.#one, { width: w, height: h });
    this.#one.getContext("2d")!.putImageData(data, 0, 0);
    context.drawImage(this.#one, dst_x, dst_y);
  }
}

let drawing: Promise<Drawing> | null = null;
/** Ends when the last order was obeyed: they are obeyed one after the other. */
let obeyed = Promise.resolve();

async function obey(order: AssOrder): Promise<void> {
  if (order.kind === "open") {
    drawing = Drawing.open(order);
    await drawing;
    return self.postMessage({ kind: "ready" });
  }
  const own = await drawing!;
  if (order.kind === "font") own.addFont(order.bytes);
  else if (order.kind === "script") own.setScript(order.script);
  else {
    own.draw(order);
    self.postMessage({ kind: "drawn" });
  }
}

self.onmessage = ({ data }) => {
  obeyed = obeyed.then(() => obey(data)).catch(() => self.postMessage({ kind: "failed" }));
};
