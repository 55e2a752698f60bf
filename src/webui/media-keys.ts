/** The keys of a keyboard, a headset and a lock screen. */

/** Steps of the arrow keys and of the system's seek buttons, s. */
export const SEEK_STEP_S = 10;
/** Steps of the speed keys, and its ends. */
const SPEED_STEP = 0.25;
const SLOWEST = 0.5;
const FASTEST = 2;
/** Steps of the volume, of 1. */
export const VOLUME_STEP = 0.1;

/**
 * Handles the keys of a page that plays `video`; returns how to stop that. Keys of buttons and fields stay theirs. `fill`
 * begins and ends full screen.
 */
export function listenToKeys(video: () => HTMLVideoElement | null, fill: () => void): () => void {
  const pressed = (event: KeyboardEvent) => {
    const element = video();
    if (element === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.target as HTMLElement).closest("button, a, input, select, summary, .button")) return;
    const action = actionOf(event.key, element, fill);
    if (action === null) return;
    action();
    event.preventDefault();
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

/** What a key does; null: nothing. */
function actionOf(key: string, video: HTMLVideoElement, fill: () => void): (() => unknown) | null {
  const seek = (seconds: number) => () => video.currentTime = Math.max(0, video.currentTime + seconds);
  const speed = (step: number) => () =>
    video.playbackRate = Math.min(FASTEST, Math.max(SLOWEST, video.playbackRate + step));
  const louder = (step: number) => () => video.volume = Math.min(1, Math.max(0, video.volume + step));
  switch (key) {
    case " ":
    case "k":
    case "Enter":
      return () => video.paused ? video.play() : video.pause();
    case "ArrowLeft":
    case "j":
      return seek(-SEEK_STEP_S);
    case "ArrowRight":
    case "l":
      return seek(SEEK_STEP_S);
    case "<":
      return speed(-SPEED_STEP);
    case ">":
      return speed(SPEED_STEP);
    case "+":
      return louder(VOLUME_STEP);
    case "-":
      return louder(-VOLUME_STEP);
    case "f":
      return fill;
    case "m":
      return () => video.muted = !video.muted;
    default:
      return null;
  }
}

/** Shows the system what plays, and obeys its buttons; returns how to stop that. */
export function joinMediaSession(video: HTMLVideoElement, title: string, next: (() => void) | null): () => void {
  const { mediaSession: session } = navigator;
  if (session === undefined || typeof MediaMetadata === "undefined") return () => {};
  session.metadata = new MediaMetadata({ title, artist: "millrace" });
  const actions: readonly (readonly [MediaSessionAction, ((details: MediaSessionActionDetails) => void) | null])[] = [
    ["play", () => void video.play()],
    ["pause", () => video.pause()],
    ["seekbackward", ({ seekOffset }) => video.currentTime -= seekOffset ?? SEEK_STEP_S],
    ["seekforward", ({ seekOffset }) => video.currentTime += seekOffset ?? SEEK_STEP_S],
    ["seekto", ({ seekTime }) => seekTime !== undefined && (video.currentTime = seekTime)],
    ["nexttrack", next],
  ];
  const set = (action: MediaSessionAction, handler: ((details: MediaSessionActionDetails) => void) | null) => {
    try {
      session.setActionHandler(action, handler);
    } catch {
      // A browser that does not know the action.
    }
  };
  for (const [action, handler] of actions) set(action, handler);
  const moved = () => {
    const { duration, currentTime, playbackRate } = video;
    if (Number.isFinite(duration) && duration > 0 && currentTime <= duration) {
      session.setPositionState({ duration, position: currentTime, playbackRate });
    }
  };
  video.addEventListener("timeupdate", moved);
  return () => {
    video.removeEventListener("timeupdate", moved);
    session.metadata = null;
    for (const [action] of actions) set(action, null);
  };
}
