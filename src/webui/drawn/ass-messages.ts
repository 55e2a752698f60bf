/** What the page and the worker that draws scripts say to each other. */

/** To the worker. */
export type AssOrder =
  /** Once, first: the canvas to draw on, and where the library and the font of last resort are. */
  | {
    readonly kind: "open";
    readonly canvas: OffscreenCanvas;
    readonly libraryUrl: string;
    readonly fontUrl: string;
  }
  /** One more font. */
  | { readonly kind: "font"; readonly bytes: ArrayBuffer }
  /** The whole script from now on. */
  | { readonly kind: "script"; readonly script: string }
  /** Draw what is shown at a time, in pixels; the picture has `video` pixels. */
  | {
    readonly kind: "draw";
    readonly timeS: number;
    readonly width: number;
    readonly height: number;
    readonly video: readonly [width: number, height: number];
  };

/** From the worker: `open` and each `draw` are answered. */
export type AssNews = { readonly kind: "ready" } | { readonly kind: "drawn" } | { readonly kind: "failed" };
