/** Full screen of the picture together with its title, words and menus, and when those make room for the picture. */
import { useEffect, useState } from "./state.ts";

/** After the last movement until only the picture is shown, ms. */
const IDLE_AFTER_MS = 3000;

/** Whether the browser shows more than a bare video in full screen; telephones of Apple do not. */
export const CAN_FILL = document.fullscreenEnabled === true;

/** Puts `element` in full screen, or ends that. */
export function toggleFullScreen(element: HTMLElement): void {
  const change = document.fullscreenElement === null ? element.requestFullscreen() : document.exitFullscreen();
  // Without a click or a key browsers refuse.
  void change.catch(() => {});
}

/** What `useFullScreen` returns. */
export interface FullScreen {
  readonly isFull: boolean;
  /** Nobody touched anything for a while. */
  readonly isIdle: boolean;
}

/** Follows the full screen of the page, and whether somebody does something in it. An open menu counts as that. */
export function useFullScreen(): FullScreen {
  const [isFull, setFull] = useState(document.fullscreenElement !== null);
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    const changed = () => setFull(document.fullscreenElement !== null);
    document.addEventListener("fullscreenchange", changed);
    return () => document.removeEventListener("fullscreenchange", changed);
  }, []);
  useEffect(() => {
    if (!isFull) return;
    let timer: ReturnType<typeof setTimeout>;
    const rest = () => {
      const full = document.fullscreenElement;
      if (full?.querySelector(".menu [aria-expanded=true]")) return wake();
      // What cannot be seen has no focus: the keys belong to the picture again.
      const active = document.activeElement as HTMLElement;
      if (full?.contains(active) && active !== full) full.querySelector("video")?.focus();
      setIdle(true);
    };
    const wake = () => {
      clearTimeout(timer);
      setIdle(false);
      timer = setTimeout(rest, IDLE_AFTER_MS);
    };
    wake();
    const events = ["pointermove", "pointerdown", "keydown"];
    for (const event of events) addEventListener(event, wake);
    return () => {
      clearTimeout(timer);
      setIdle(false);
      for (const event of events) removeEventListener(event, wake);
    };
  }, [isFull]);
  return { isFull, isIdle };
}
