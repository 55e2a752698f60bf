/** @jsxImportSource hono/jsx/dom */
/** What plays elsewhere: on a television, in a program, on another page; and its remote control. */
import { useRef } from "hono/jsx/dom";
import { Heading } from "./heading.tsx";
import { act, type ApiPlayerStatus, type OtherPlayer } from "./engine.ts";
import { useEffect, useState } from "./state.ts";
import { clockText, errorText, text } from "./texts.ts";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 1000;
/** The player's own word for where it is counts again so long after the user moved it, ms. */
const MOVED_MS = 3000;

/** Properties of `CastPage`. */
export interface CastPageProps {
  readonly title: string;
  readonly player: OtherPlayer;
  /** Back to what else there is; it plays on there. */
  readonly back: () => void;
}

/** The remote control. */
export function CastPage({ title, player: { id, name }, back }: CastPageProps) {
  const [status, setStatus] = useState<ApiPlayerStatus | null>(null);
  const [trouble, setTrouble] = useState("");
  const movedMs = useRef(-Infinity);
  const failed = (error: unknown) => setTrouble(errorText(error));
  useEffect(() => {
    const ending = new AbortController();
    const look = async () => {
      while (!ending.signal.aborted) {
        try {
          const now = await act("get_player_status", { player_id: id }) as ApiPlayerStatus;
          if (ending.signal.aborted) return;
          setTrouble("");
          setStatus((before) =>
            before !== null && performance.now() - movedMs.current! < MOVED_MS
              ? { ...now, position: before.position }
              : now
          );
        } catch (error) {
          failed(error);
        }
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    };
    void look();
    return () => ending.abort();
  }, []);
  const control = (command: string, more: Record<string, string> = {}) => {
    setTrouble("");
    return act("control_player", { player_id: id, command, ...more }).then(() => true, (error) => {
      failed(error);
      return false;
    });
  };
  const seek = (position: number) => {
    movedMs.current = performance.now();
    setStatus((before) => before && { ...before, position });
    void control("seek", { position: String(position) });
  };
  const { state = "opening", position = null, duration = null, volume = null } = status ?? {};
  const isPaused = state === "paused";
  return (
    <section class="cast">
      <div class="stage">
        <svg viewBox="0 0 64 40" aria-hidden="true">
          <rect x="3" y="3" width="58" height="30" rx="4" />
          <path class={state === "playing" ? "wave moving" : "wave"} d="M11 20c7-7 13 7 21 0s13 7 21 0" />
          <path d="M22 37h20" />
        </svg>
        <p class="note">{text("playsOn", name)}</p>
        <Heading words={title} />
      </div>
      <p class={trouble === "" ? "status" : "status trouble"} role="status">
        {trouble !== "" ? trouble : text(`cast_${state}` as "cast_playing")}
      </p>
      {position === null || duration === null || duration <= 0 ? null : (
        <div class="live">
          <span class="clock">{clockText(position)}</span>
          <input
            type="range"
            aria-label={text("position")}
            aria-valuetext={clockText(position)}
            min={0}
            max={Math.floor(duration)}
            value={Math.floor(position)}
            onChange={(event: Event) => seek(Number((event.target as HTMLInputElement).value))}
          />
          <span class="clock">{clockText(duration)}</span>
        </div>
      )}
      {volume === null ? null : (
        <label class="live">
          <span class="clock">{text("volume")}</span>
          <input
            type="range"
            min={0}
            max={100}
            value={Math.round(volume)}
            onChange={(event: Event) => void control("volume", { volume: (event.target as HTMLInputElement).value })}
          />
        </label>
      )}
      <div class="actions">
        <button type="button" onClick={back}>{text("back")}</button>
        {state === "playing" || isPaused
          ? (
            <button type="button" class="big" onClick={() => void control(isPaused ? "resume" : "pause")}>
              {text(isPaused ? "resume" : "pause")}
            </button>
          )
          : null}
        <button
          type="button"
          disabled={state === "idle"}
          onClick={() => void control("stop").then((isDone) => isDone && back())}
        >
          {text("stop")}
        </button>
      </div>
    </section>
  );
}
