/** What a video element does, as a state that follows its events. */
import { useEffect, useState } from "./state.ts";

/** Of the element, seconds. */
export interface VideoState {
  readonly isPaused: boolean;
  /** Whether the element should play and has nothing to show. */
  readonly isStarved: boolean;
  readonly atS: number;
  /** 0 while it is not known, and of a broadcast. */
  readonly durationS: number;
  readonly isMuted: boolean;
  readonly volume: number;
  readonly rate: number;
}

const EVENTS = [
  ...["timeupdate", "play", "pause", "volumechange", "ratechange", "durationchange", "seeking", "seeked", "ended"],
  ...["waiting", "playing"],
];

const UNKNOWN: VideoState = {
  isPaused: true,
  isStarved: false,
  atS: 0,
  durationS: 0,
  isMuted: false,
  volume: 1,
  rate: 1,
};

/** Follows the element. */
export function useVideoState(video: () => HTMLVideoElement | null): VideoState {
  const [state, setState] = useState(UNKNOWN);
  useEffect(() => {
    const element = video()!;
    const look = () =>
      setState({
        isPaused: element.paused,
        isStarved: !element.paused && element.readyState < HTMLMediaElement.HAVE_FUTURE_DATA,
        atS: element.currentTime,
        durationS: Number.isFinite(element.duration) ? element.duration : 0,
        isMuted: element.muted || element.volume === 0,
        volume: element.volume,
        rate: element.playbackRate,
      });
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Drawing between two listeners of one event would exchange the second, which then misses it: look once all were called.
    const happened = () => {
      clearTimeout(timer);
      timer = setTimeout(look);
    };
    look();
    for (const event of EVENTS) element.addEventListener(event, happened);
    return () => {
      clearTimeout(timer);
      for (const event of EVENTS) element.removeEventListener(event, happened);
    };
  }, []);
  return state;
}
