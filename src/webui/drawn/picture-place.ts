/** Where the picture of a video is in its element, px of the page. */

/** The place of a picture. */
export interface PicturePlace {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The place of the picture of `video`; null while it has none. */
export function placeOf(video: HTMLVideoElement): PicturePlace | null {
  const { clientWidth: wide, clientHeight: high, videoWidth, videoHeight } = video;
  if (videoWidth === 0 || wide === 0 || high === 0) return null;
  const width = Math.min(wide, high * videoWidth / videoHeight);
  const height = width * videoHeight / videoWidth;
  return {
    left: video.offsetLeft + (wide - width) / 2,
    top: video.offsetTop + (high - height) / 2,
    width,
    height,
  };
}
