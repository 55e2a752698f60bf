/** @jsxImportSource hono/jsx/dom */
/** The film as a line: which pieces of it are here, how far it was seen, and a handle that moves it. */
import { useRef } from "hono/jsx/dom";
import type { Stat } from "./engine.ts";
import { PiecePicture } from "./piece-picture.tsx";
import { useEffect, useState } from "./state.ts";
import { clockText, text } from "./texts.ts";

/** Properties of `Timeline`. Seconds. */
export interface TimelineProps {
  readonly atS: number;
  readonly durationS: number;
  readonly stat: Stat | null;
  readonly seek: (seconds: number) => void;
  /** One press of an arrow key while the line has the focus. */
  readonly stepS: number;
}

/** The line. The film moves when the handle is let go: each place on the way would be asked of the swarm. */
export function Timeline({ atS, durationS, stat, seek, stepS }: TimelineProps) {
  const [dragged, setDragged] = useState<number | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const range = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const element = range.current!;
    const released = () => {
      setDragged(null);
      seek(Number(element.value));
    };
    element.addEventListener("change", released);
    return () => element.removeEventListener("change", released);
  }, []);
  const at = Math.min(dragged ?? atS, durationS);
  const percent = (seconds: number) => `${durationS > 0 ? 100 * seconds / durationS : 0}%`;
  const hover = (event: PointerEvent) => {
    const { left, width } = range.current!.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
    setHovered(durationS > 0 && event.pointerType !== "touch" ? share * durationS : null);
  };
  const pressed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowLeft" ? -stepS : event.key === "ArrowRight" ? stepS : 0;
    if (step === 0) return;
    event.preventDefault();
    seek(Math.min(durationS, Math.max(0, atS + step)));
  };
  const told = dragged ?? hovered;
  return (
    <div class="timeline" onPointerMove={hover} onPointerLeave={() => setHovered(null)}>
      {stat === null ? <div class="channel" /> : <PiecePicture stat={stat} />}
      <span class="seen" style={{ width: percent(at) }} />
      <span class="buoy" style={{ left: percent(at) }} />
      {told === null ? null : <span class="tip" style={{ left: percent(told) }}>{clockText(told)}</span>}
      <input
        ref={range}
        type="range"
        aria-label={text("position")}
        aria-valuetext={`${clockText(at)} / ${clockText(durationS)}`}
        min={0}
        max={Math.max(1, Math.floor(durationS))}
        step={1}
        value={Math.floor(at)}
        onChange={(event: Event) => setDragged(Number((event.target as HTMLInputElement).value))}
        onKeyDown={pressed}
      />
    </div>
  );
}
