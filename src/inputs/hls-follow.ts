/** Which segments of a growing playlist come next (RFC 8216, 6.3). No clock, no network: both are arguments. */
import type { MediaList, PlaylistSegment } from "../content/hls-playlist.ts";

/** A live playlist is joined this many segments before its end (6.3.3 asks for three target durations). */
const START_BEHIND = 3;
/** More than these waiting means that we are behind. */
const BEHIND_SEGMENTS = 5;
/** A playlist that stays behind for this many reloads is a new one, not an old copy from a cache. */
const OLD_COPIES = 3;
/** Shortest time after which a playlist is loaded again, ms, if segments are said to be shorter. */
const LEAST_RELOAD_MS = 1000;
/** Without a new segment for this many target durations the source is lost. */
const STALE_TARGETS = 3;

/** The result of a reload. */
export interface FollowStep {
  /** Why the next segment does not continue the one before; null when it does. */
  readonly lost: string | null;
  /** Monotonic time of the reload, and how long after it the next is due, ms. */
  readonly atMs: number;
  readonly reloadMs: number;
  readonly hasEnded: boolean;
}

/** Where a live playlist was joined. */
export interface JoinedAt {
  /** Monotonic time at which it was loaded, ms. */
  readonly atMs: number;
  /** From its first segment to the latest moment that another playlist of the broadcast could name then, s. */
  readonly behindS: number;
}

/** Most seconds that go by between joining two playlists of a broadcast: a channel has failed long before. */
const MOST_BETWEEN_S = 30;

/** Follows one playlist. It has no clock and no network: both are its caller. */
export class HlsFollower {
  #next: number | null = null;
  #waiting: PlaylistSegment[] = [];
  #isLive = true;
  #oldCopies = 0;
  /** Of the first playlist since it began. */
  #firstSequence = 0;
  #grewAtMs: number | null = null;
  #targetMs = 10_000;
  readonly #beside: JoinedAt | null;
  #joined: JoinedAt | null = null;

  /** `beside`: where the playlist was joined whose sound this one has; null: it is joined by itself. */
  constructor(beside: JoinedAt | null = null) {
    this.#beside = beside;
  }

  /** Where the playlist was joined, if it is live. */
  get joined(): JoinedAt | null {
    return this.#joined;
  }

  /** More is waiting than a reader at the edge has. A recording never is: it is all there. */
  get isBehind(): boolean {
    return this.#isLive && this.#waiting.length > BEHIND_SEGMENTS;
  }

  /** True when nothing new came for long, at `nowMs` (monotonic). */
  isStale(nowMs: number): boolean {
    return this.#grewAtMs === null || nowMs - this.#grewAtMs > STALE_TARGETS * this.#targetMs;
  }

  /** Takes a playlist that was loaded at `nowMs` (monotonic). */
  update(list: MediaList, nowMs: number): FollowStep {
    const { segments, hasEnded } = list;
    this.#targetMs = list.targetDurationS * 1000;
    const end = list.firstSequence + segments.length;
    let lost: string | null = null;
    const start = hasEnded ? list.firstSequence : Math.max(list.firstSequence, this.#start(list, nowMs));
    if (this.#next === null) {
      if (segments.length > 0) this.#join(list, start, nowMs);
      this.#firstSequence = list.firstSequence;
      this.#isLive = !hasEnded;
    } else if (end < this.#next) {
      // No cache has a copy that is older than the playlist was at first by all of its length.
      const isTooOld = end + segments.length < this.#firstSequence;
      if (++this.#oldCopies >= OLD_COPIES || isTooOld || hasEnded) {
        lost = "the playlist began again";
        this.#next = start;
        this.#firstSequence = list.firstSequence;
      }
    } else {
      this.#oldCopies = 0;
      if (list.firstSequence > this.#next) {
        lost = `${list.firstSequence - this.#next} segments were gone before they were read`;
        this.#next = list.firstSequence;
      }
    }
    const from = this.#next ?? 0;
    const added = segments.filter(({ sequence }) => sequence >= from);
    const hadNews = added.length > this.#waiting.length || lost !== null;
    // Waiting segments are taken from the newest list: their addresses may have changed with a token in them.
    this.#waiting = this.#next === null || end < from ? [] : added;
    if (hadNews) this.#grewAtMs = nowMs;
    else if (lost === null && this.#grewAtMs !== null && this.isStale(nowMs) && !hasEnded) {
      lost = `no new segment for ${Math.round((nowMs - this.#grewAtMs) / 1000)} s`;
    }
    this.#grewAtMs ??= nowMs;
    // The next segment comes when the last one is over (RFC 8216bis, 6.3.4); a target duration may be many times as long.
    const lastMs = (segments.at(-1)?.durationS ?? 0) * 1000;
    const reloadMs = lastMs === 0 ? this.#targetMs : Math.min(this.#targetMs, Math.max(LEAST_RELOAD_MS, lastMs));
    return { lost, atMs: nowMs, reloadMs: hadNews ? reloadMs : reloadMs / 2, hasEnded };
  }

  /** Number of the segment at which a live playlist is joined, which may be before its first. */
  #start({ firstSequence, segments }: MediaList, nowMs: number): number {
    const end = firstSequence + segments.length;
    if (this.#beside === null) return end - START_BEHIND;
    // When the pictures begin again, their playlist may be a segment behind this one.
    if (this.#next !== null) return end - START_BEHIND - 1;
    const betweenS = Math.min((nowMs - this.#beside.atMs) / 1000, MOST_BETWEEN_S);
    let leftS = this.#beside.behindS + betweenS;
    let start = end;
    // Its numbers need not be those of the pictures, nor its segments as long. What is too early is left out later.
    while (leftS > 0 && start > firstSequence) leftS -= segments[--start - firstSequence]!.durationS;
    return start;
  }

  #join({ firstSequence, segments, hasEnded }: MediaList, start: number, nowMs: number): void {
    this.#next = start;
    if (hasEnded) return;
    const sent = segments.slice(start - firstSequence);
    const longestS = Math.max(...sent.map(({ durationS }) => durationS));
    // Another playlist may have been given one more segment already.
    const behindS = sent.reduce((sum, { durationS }) => sum + durationS, 0) + longestS;
    this.#joined = { atMs: nowMs, behindS };
  }

  /** The segment to send next; null when the next reload has to show it. */
  next(): PlaylistSegment | null {
    const segment = this.#waiting.shift() ?? null;
    if (segment !== null) this.#next = segment.sequence + 1;
    return segment;
  }
}
