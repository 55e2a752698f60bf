/** What of jassub's build of libass the worker uses; its own types say nothing of it. */

/** A picture of one colour: its coverage lies in the library's memory. */
export interface AssImage {
  readonly w: number;
  readonly h: number;
  readonly stride: number;
  /** Red, green, blue, and how clear it is. */
  readonly color: number;
  /** Where its coverage begins. */
  readonly bitmap: number;
  readonly dst_x: number;
  readonly dst_y: number;
}

/** A renderer with one script. */
export interface AssRenderer {
  setThreads(count: number): void;
  setMemoryLimits(glyphs: number, bitmapMegabytes: number): void;
  /** Takes the memory at `at`. */
  addFont(name: string, at: number, sizeBytes: number): void;
  reloadFonts(): void;
  createTrackMem(script: string): void;
  resizeCanvas(width: number, height: number, videoWidth: number, videoHeight: number): void;
  /** Null when the picture is the same as before, unless `again` is 1. */
  rawRender(timeS: number, again: number): readonly AssImage[] | null;
}

/** The library, once it is loaded. */
export interface Libass {
  readonly JASSUB: new (width: number, height: number, fontFamily: string) => AssRenderer;
  readonly _malloc: (sizeBytes: number) => number;
}
