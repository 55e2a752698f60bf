/** The keys of a keyboard, a headset and a lock screen. */

/** Steps of the arrow keys and of the system's seek buttons, s. */
const SEEK_STEP_S = 10;

/**
 * Handles the keys of a page that plays `video`; returns how to stop that. Keys of buttons and fields stay theirs. `fill`
 * begins and ends full screen.
 */
export function listenToKeys(video: () => HTMLVideoElement | null, fill: () => void): () => void {
  const pressed = (event: KeyboardEvent) => {
    const element = video();
    if (element === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.target as HTMLElement).closest("button, a, input, select, summary, .button")) return;
    if ([" ", "k", "Enter"].includes(event.key)) element.paused ? void element.play() : element.pause();
    else if (event.key === "ArrowLeft") element.currentTime -= SEEK_STEP_S;
    else if (event.key === "ArrowRight") element.currentTime += SEEK_STEP_S;
    else if (event.key === "f") fill();
    else if (event.key === "m") element.muted = !element.muted;
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
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
