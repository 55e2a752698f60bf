/** @jsxImportSource hono/jsx/dom */
/** A broadcast in time: how far back one can go, where the picture stands, and the way to its edge. */
import { useEffect, useState } from "./state.ts";
import { text } from "./texts.ts";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 1000;
/** Players stay this far behind the newest picture, so that they never run dry, s. */
const EDGE_S = 8;

/** Properties of `LiveBar`. */
export interface LiveBarProps {
  readonly video: () => HTMLVideoElement | null;
}

/** Seconds of the player's own clock. */
interface Place {
  readonly start: number;
  readonly end: number;
  readonly at: number;
}

/** The bar; nothing while there is nothing to go back to. */
export function LiveBar({ video }: LiveBarProps) {
  const [place, setPlace] = useState<Place | null>(null);
  const look = () => {
    const element = video();
    if (element === null || element.seekable.length === 0) return setPlace(null);
    const { seekable, currentTime: at } = element;
    setPlace({ start: seekable.start(0), end: seekable.end(seekable.length - 1), at });
  };
  useEffect(() => {
    const timer = setInterval(look, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  if (place === null || place.end - place.start < 1) return null;
  const behind = Math.max(0, Math.round(place.end - place.at));
  const isLive = behind <= EDGE_S;
  const go = (at: number) => {
    const element = video()!;
    element.currentTime = at;
    void element.play().catch(() => {});
    look();
  };
  return (
    <div class="live">
      <input
        type="range"
        aria-label={text("timeshift")}
        aria-valuetext={text("behindLive", behind)}
        min={place.start}
        max={place.end}
        step={1}
        value={place.at}
        onChange={(event: Event) => go(Number((event.target as HTMLInputElement).value))}
      />
      <span class="note">{isLive ? text("atEdge") : text("behindLive", behind)}</span>
      <button type="button" disabled={isLive} onClick={() => go(place.end - 2)}>{text("toLive")}</button>
    </div>
  );
}
