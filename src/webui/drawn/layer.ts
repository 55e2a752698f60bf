/** What draws subtitles over a video. */

/** Something that draws over a video. */
export interface Layer {
  /** Draws what is shown at this time; called for each frame. */
  draw(timeS: number): void;
  close(): void;
}

/** The files of a drawn track. */
export interface LayerSource {
  /** What their addresses begin with. */
  readonly base: string;
  readonly number: number;
  /** Where each segment begins. */
  readonly startsMs: readonly number[];
}

/** What a layer tells the viewer. */
export interface LayerTold {
  /** The layer cannot draw, or that is too much work; it has closed itself. */
  failed(): void;
  /** What the layer shows is not all, because it bounds what it takes. */
  leftOut(what: "lines" | "fonts", count: number): void;
}
