/** Sums up what the viewers of a run received. */
import type { ViewerFigures } from "./viewer-meter.ts";

/** One viewer of a run. */
export interface ViewerResult {
  /** The first that arrived is 1. */
  readonly viewer: number;
  readonly uplinkMbit: number;
  readonly isClosed: boolean;
  readonly figures: ViewerFigures;
  /** What its engine and its reader said last, if it did not play. */
  readonly complaint: string;
}

/** All viewers of a run together, without those that were made to vanish. */
export interface WanSummary {
  readonly viewers: number;
  readonly playing: number;
  /** From the request to a second of media, s; infinite for those that never play. */
  readonly joinP50S: number;
  readonly joinP95S: number;
  readonly joinLongestS: number;
  /** How far the newest that players were given was behind the source, s: equally spaced samples of all viewers. */
  readonly lagP50S: number;
  readonly lagP95S: number;
  /** Share of the media since each join that came; a player that stands still at the end lacks that time, too. */
  readonly continuity: number;
  /** The longest time for which a player had nothing to play, s. */
  readonly longestStillS: number;
}

/** The head of a Markdown table of summaries. */
export const TABLE_HEAD =
  `| | playing | stream | join p50 · p95 · longest, s | lag p50 · p95, s | longest standstill, s |
| --- | --- | --- | --- | --- | --- |`;

/** The value below which a share of `values` lies, as in the simulation. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

/** How much of the stream `viewers` received. Those that never play received nothing since their request. */
export function continuityOf(viewers: readonly ViewerFigures[]): number {
  const received = ({ joinMs, mediaMs }: ViewerFigures) => joinMs === null ? 0 : mediaMs;
  const due = ({ joinMs, mediaMs, missingMs, endedStillMs, watchedMs }: ViewerFigures) =>
    joinMs === null ? watchedMs : mediaMs + missingMs + endedStillMs;
  const sum = (of: (viewer: ViewerFigures) => number) => viewers.reduce((total, viewer) => total + of(viewer), 0);
  return sum(received) / sum(due);
}

/** The summary of a run. */
export function summarize(results: readonly ViewerResult[]): WanSummary {
  const figures = results.map((result) => result.figures);
  const joinsMs = figures.map(({ joinMs }) => joinMs ?? Infinity);
  const lagsMs = figures.flatMap((viewer) => viewer.lagsMs);
  return {
    viewers: results.length,
    playing: figures.filter(({ joinMs }) => joinMs !== null).length,
    joinP50S: percentile(joinsMs, 0.5) / 1000,
    joinP95S: percentile(joinsMs, 0.95) / 1000,
    joinLongestS: percentile(joinsMs, 1) / 1000,
    lagP50S: percentile(lagsMs, 0.5) / 1000,
    lagP95S: percentile(lagsMs, 0.95) / 1000,
    continuity: continuityOf(figures),
    longestStillS: Math.max(...figures.map(({ longestStillMs }) => longestStillMs)) / 1000,
  };
}

/** A summary as a row of a Markdown table. */
export function tableRow(name: string, summary: WanSummary): string {
  const { joinP50S, joinP95S, joinLongestS, lagP50S, lagP95S } = summary;
  const inS = (...times: number[]) => times.map((time) => time.toFixed(2)).join(" · ");
  const cells = [
    name,
    `${summary.playing} of ${summary.viewers}`,
    percent(summary.continuity),
    inS(joinP50S, joinP95S, joinLongestS),
    inS(lagP50S, lagP95S),
    inS(summary.longestStillS),
  ];
  return `| ${cells.join(" | ")} |`;
}

/** One viewer in a line. */
export function viewerLine({ viewer, uplinkMbit, isClosed, figures, complaint }: ViewerResult): string {
  const inS = (ms: number | null) => ms === null ? "never" : (ms / 1000).toFixed(2);
  const lags = [0.5, 0.95].map((share) => inS(percentile(figures.lagsMs, share))).join(" · ");
  const line = `viewer ${viewer}, ${uplinkMbit} Mbit/s${isClosed ? ", closed" : ""}: join ${inS(figures.joinMs)} s, ` +
    `lag ${lags} s, ${inS(figures.mediaMs)} s of media, ${inS(figures.missingMs)} s missing, ` +
    `longest standstill ${inS(figures.longestStillMs)} s, at the end ${inS(figures.endedStillMs)} s`;
  return complaint === "" ? line : `${line}\n${complaint}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}
