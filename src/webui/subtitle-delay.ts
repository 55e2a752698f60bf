/** Moves the cues of subtitles in time, also of those that a player adds later. */

/** Between two looks for cues that were added, ms. */
const LOOK_EVERY_MS = 500;

/** The delay of one video's subtitles. */
export class SubtitleDelay {
  readonly #video: HTMLVideoElement;
  /** By how much a cue was moved, s. */
  readonly #moved = new WeakMap<TextTrackCue, number>();
  #delayS = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(video: HTMLVideoElement) {
    this.#video = video;
  }

  /** Later by so much, s; earlier where it is negative. */
  set(delayS: number): void {
    this.#delayS = delayS;
    this.#apply();
    clearInterval(this.#timer);
    this.#timer = delayS === 0 ? undefined : setInterval(() => this.#apply(), LOOK_EVERY_MS);
  }

  /** Ends it; what was moved stays moved. */
  close(): void {
    clearInterval(this.#timer);
  }

  #apply(): void {
    for (const { mode, cues } of this.#video.textTracks) {
      if (mode !== "showing" || cues === null) continue;
      // Moving a cue may change its place in the list.
      for (const cue of [...cues]) {
        const by = this.#delayS - (this.#moved.get(cue) ?? 0);
        if (by === 0) continue;
        this.#moved.set(cue, this.#delayS);
        cue.startTime += by;
        cue.endTime += by;
      }
    }
  }
}
