/** Full screen of the player with its controls, and when those make room for the picture. */
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

/** Whether the page shows something in full screen. */
export function useFullScreen(): boolean {
  const [isFull, setFull] = useState(document.fullscreenElement !== null);
  useEffect(() => {
    const changed = () => setFull(document.fullscreenElement !== null);
    document.addEventListener("fullscreenchange", changed);
    return () => document.removeEventListener("fullscreenchange", changed);
  }, []);
  return isFull;
}

/**
 * Whether nobody touched anything for a while. While `isKept` the controls stay; an open menu, and a heading that a screen
 * reader begins with, keep them, too.
 */
export function useIdle(theatre: () => HTMLElement | null, isKept: boolean): boolean {
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    if (isKept) return;
    let timer: ReturnType<typeof setTimeout>;
    const rest = () => {
      const whole = theatre();
      if (whole?.querySelector(".menu [aria-expanded=true]")) return wake();
      // What cannot be seen has no focus: the keys belong to the picture again.
      const active = document.activeElement as HTMLElement;
      if (whole?.contains(active) && active.tagName !== "H1") whole.querySelector("video")?.focus();
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
  }, [isKept]);
  return isIdle;
}
