/** Stills of the film that plays, small enough to be kept beside its place: the first screen shows them. */

/** As wide as a tile of a television, px. */
const WIDTH_PX = 320;
/** A tall picture becomes no larger than a square. */
const MAX_HEIGHT_PX = 320;
/** Between two stills, s of the film: reading a picture back from a graphics card takes some milliseconds. */
const EVERY_S = 20;
const QUALITY = 0.6;
/** Noise takes up to 40 KB. The browser keeps 5 MB for the page, and 24 films have a still. */
const MAX_CHARS = 60_000;

/** Takes stills of one film, each some time after the one before. */
export class Stills {
  #takenAtS = -Infinity;

  /** The picture that `video` shows, as a `data:` address; null: it is too early for another, or there is none. */
  take(video: HTMLVideoElement): string | null {
    const { currentTime, videoWidth, videoHeight } = video;
    if (videoWidth === 0 || Math.abs(currentTime - this.#takenAtS) < EVERY_S) return null;
    this.#takenAtS = currentTime;
    const canvas = document.createElement("canvas");
    canvas.width = WIDTH_PX;
    canvas.height = Math.min(MAX_HEIGHT_PX, Math.max(1, Math.round(WIDTH_PX * videoHeight / videoWidth)));
    try {
      canvas.getContext("2d")!.drawImage(video, 0, 0, canvas.width, canvas.height);
      const still = canvas.toDataURL("image/jpeg", QUALITY);
      return still.length > MAX_CHARS ? null : still;
    } catch {
      // A browser that lets nobody read its pictures.
      return null;
    }
  }
}
