/** @jsxImportSource hono/jsx/dom */
/** Over the picture: why it waits, in words and as a basin that fills, and the figures for those who want them. */
import type { Child } from "hono/jsx";
import type { Stat } from "./engine.ts";
import { PeerList } from "./peer-list.tsx";
import { figuresText } from "./player-status.ts";
import { text } from "./texts.ts";

/** Properties of `Notice`. */
export interface NoticeProps {
  readonly words: string;
  readonly isTrouble: boolean;
  /** While it waits: who sends, and how fast. */
  readonly stat: Stat | null;
  /** Buttons that help. */
  readonly children: Child;
}

/** The words, and the buttons that help. */
export function Notice({ words, isTrouble, stat, children }: NoticeProps) {
  return (
    <div class="notice">
      <p class={isTrouble ? "status trouble" : "status"} role="status">{words}</p>
      {stat === null ? null : <p class="figures">{figuresText(stat)}</p>}
      <div class="actions">{children}</div>
    </div>
  );
}

/** Properties of `Statistics`. */
export interface StatisticsProps {
  readonly stat: Stat;
  readonly close: () => void;
}

/** Peers, speeds, and who sends. */
export function Statistics({ stat, close }: StatisticsProps) {
  return (
    <aside class="statistics" aria-label={text("statistics")}>
      <p class="figures">{figuresText(stat)}</p>
      <PeerList stat={stat} />
      <button type="button" onClick={close}>{text("close")}</button>
    </aside>
  );
}

/** The basin that fills with the first seconds. */
export function Filling({ percent }: { readonly percent: number }) {
  return (
    <div class="filling" aria-hidden="true">
      <svg viewBox="0 0 100 100">
        <circle class="basin" cx="50" cy="50" r="44" />
        <circle class="level" cx="50" cy="50" r="44" pathLength="100" stroke-dasharray={`${percent} 100`} />
      </svg>
      <b>{percent} %</b>
    </div>
  );
}
