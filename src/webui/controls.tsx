/** @jsxImportSource hono/jsx/dom */
/** The player's controls: the timeline, and below it one row of buttons. */
import type { Child } from "hono/jsx";
import type { Stat } from "./engine.ts";
import { IconButton } from "./icons.tsx";
import { SEEK_STEP_S } from "./media-keys.ts";
import { Menu } from "./menu.tsx";
import { clockText, text } from "./texts.ts";
import { Timeline } from "./timeline.tsx";
import type { VideoState } from "./video-state.ts";

/** Speeds that can be chosen. */
const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];

/** Properties of `Controls`. */
export interface ControlsProps {
  readonly video: () => HTMLVideoElement | null;
  readonly state: VideoState;
  readonly stat: Stat | null;
  /** In place of the timeline; null for a film. */
  readonly liveBar: Child | null;
  /** The menus of sound and subtitles. */
  readonly tracks: Child;
  /** What sends the stream to another player. */
  readonly cast: Child;
  /** The menu of everything else. */
  readonly more: Child;
  readonly next: (() => void) | null;
  readonly isFull: boolean;
  readonly fill: () => void;
}

/** The controls. */
export function Controls(props: ControlsProps) {
  const { video, state, stat, next, isFull } = props;
  const { isPaused, atS, durationS, isMuted, rate } = state;
  const seek = (seconds: number) => {
    video()!.currentTime = seconds;
  };
  const step = (seconds: number) => {
    const element = video()!;
    element.currentTime = Math.max(0, element.currentTime + seconds);
  };
  const toggle = () => isPaused ? void video()!.play().catch(() => {}) : video()!.pause();
  const mute = () => {
    const element = video()!;
    element.muted = !element.muted;
  };
  return (
    <div class="controls">
      {props.liveBar ?? <Timeline atS={atS} durationS={durationS} stat={stat} seek={seek} stepS={SEEK_STEP_S} />}
      <div class="row">
        <IconButton icon={isPaused ? "play" : "pause"} label={text(isPaused ? "play" : "pause")} press={toggle} />
        <IconButton icon="rewind" label={text("rewind", SEEK_STEP_S)} press={() => step(-SEEK_STEP_S)} />
        <IconButton icon="forward" label={text("forward", SEEK_STEP_S)} press={() => step(SEEK_STEP_S)} />
        <IconButton icon={isMuted ? "muted" : "loud"} label={text("mute")} isPressed={isMuted} press={mute} />
        {props.liveBar !== null
          ? null
          : <span class="time">{clockText(atS)}{durationS > 0 ? <small>/ {clockText(durationS)}</small> : null}</span>}
        <span class="gap" />
        {props.tracks}
        <Menu
          label={text("speed")}
          icon="speed"
          choices={SPEEDS.map((speed) => ({ value: String(speed), label: `${speed}×` }))}
          value={String(rate)}
          choose={(speed) => video()!.playbackRate = Number(speed)}
        />
        {next === null ? null : <IconButton icon="next" label={text("next")} press={next} />}
        {props.cast}
        {document.pictureInPictureEnabled
          ? (
            <IconButton
              icon="inPicture"
              label={text("pictureInPicture")}
              press={() => void video()!.requestPictureInPicture().catch(() => {})}
            />
          )
          : null}
        <IconButton
          icon={isFull ? "unfull" : "full"}
          label={text("fullScreen")}
          isPressed={isFull}
          press={props.fill}
        />
        {props.more}
      </div>
    </div>
  );
}
