/** Low-latency HLS of a broadcast (RFC 8216bis): playlists with parts, and requests that wait for what comes next. */
import { MillraceError } from "../../errors.ts";
import { type MadePart, PART_TARGET_S } from "../../media/mux/cmaf/live/part-maker.ts";
import type { LivePlaylistParts, PartsForm } from "../../media/hls/live-playlist.ts";
import type { Clock } from "../../ports.ts";
import type { LiveSegment } from "./live-cuts.ts";
import type { LiveChoice } from "./live-fragments.ts";
import { LiveParts, type PartedBroadcast, type PartedSegment } from "./live-parts.ts";

/** Most sounds of which parts are made at a time: each is work, and memory. */
const MAX_FEEDS = 4;
/** Requests that may wait at a time, of all players of a broadcast: each costs a kilobyte or two, and a connection. */
const MAX_WAITING = 2000;
/** How long a request waits for a part and for a whole segment, ms: three of the shortest and longest target durations (6.2.5.2). */
const PART_WAIT_MS = 6000;
const SEGMENT_WAIT_MS = 30_000;
/** Segments beyond the newest that may be waited for; parts of the segment that grows, beyond its newest (6.2.5.2). */
const FAR_SEGMENTS = 2;
const FAR_PARTS = Math.ceil(3 / PART_TARGET_S);

/** What a player asks of a playlist. */
export interface LowLatencyAsk extends PartsForm {
  /** null: what is here. */
  readonly awaited: Awaited | null;
}

/** What a request for a playlist waits for. */
export interface Awaited {
  /** Number of a segment (`_HLS_msn`). */
  readonly segment: number;
  /** Number of a part in it (`_HLS_part`); null: the whole segment. */
  readonly part: number | null;
}

/** What a playlist shows: whole segments, and the parts of the one that grows. */
export interface Shown {
  readonly segments: readonly LiveSegment[];
  /** The one that grows; null: none of its parts is here. */
  readonly growing: PartedSegment | null;
  /** Number of the one that grows. */
  readonly next: number;
}

/** The low-latency side of one broadcast. */
export class LowLatency {
  readonly #stream: PartedBroadcast;
  readonly #clock: Clock;
  readonly #feeds = new Map<string, LiveParts>();
  #waiting = 0;

  constructor(stream: PartedBroadcast, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
  }

  /** Requests that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** What players of `choice` can have now; null before its parts have caught up. Throws as `LiveFragments.formsOf`, or `too_busy`. */
  shown(choice: LiveChoice): Shown | null {
    const feed = this.#feed(choice);
    feed.check();
    const { next } = feed;
    if (next === null) return null;
    const segments = this.#stream.segments.filter(({ n }) => n < next);
    const last = segments.at(-1)?.n;
    // A segment whose last packets have not come is over for the feed, but not in the window.
    if (last !== undefined && last !== next - 1) return { segments, growing: feed.segment(last + 1), next: last + 1 };
    return { segments, growing: feed.segment(next), next };
  }

  /** The parts of segment `n` if all of them are kept; null: nobody asked for them, or they are gone. */
  wholeParts(choice: LiveChoice, n: number): readonly MadePart[] | null {
    const feed = this.#feeds.get(keyOf(choice));
    const parts = feed?.segment(n)?.parts;
    return parts?.at(-1)?.isLast === true ? parts : null;
  }

  /**
   * Resolves once `isHere`, or no more will come. Rejects with `too_busy` when too many wait, `unavailable` after `waitMs`, or
   * the signal's reason.
   */
  async #until(choice: LiveChoice, isHere: () => boolean, waitMs: number, signal: AbortSignal): Promise<void> {
    if (isHere()) return;
    if (this.#waiting >= MAX_WAITING) {
      throw new MillraceError("too_busy", "too many requests wait for this broadcast: ask again");
    }
    const late = new AbortController();
    const timer = this.#clock.setTimeout(() => late.abort(LATE()), waitMs);
    const waiting = AbortSignal.any([signal, late.signal, this.#stream.ending]);
    this.#waiting++;
    try {
      while (!isHere() && !this.#stream.ended) await this.#feed(choice).changed(waiting);
    } finally {
      this.#waiting--;
      timer.cancel();
    }
  }

  /** Waits until a playlist would hold `leastMs`, at most `waitMs`. Rejects as `arrived`. */
  async filled(choice: LiveChoice, leastMs: number, waitMs: number, signal: AbortSignal): Promise<void> {
    const heldMs = ({ segments, growing }: Shown) =>
      [...segments, ...growing?.parts ?? []].reduce((sum, { durationMs }) => sum + durationMs, 0);
    const isHere = () => {
      const now = this.shown(choice);
      return now !== null && heldMs(now) >= leastMs;
    };
    await this.#until(choice, isHere, waitMs, signal);
  }

  /**
   * Waits for `awaited`. Throws `invalid_argument` for what is too far ahead, `too_busy` when too many
   * requests wait, or `unavailable` when it takes too long; rejects with the signal's reason.
   */
  async arrived(choice: LiveChoice, awaited: Awaited, signal: AbortSignal): Promise<void> {
    const shown = this.shown(choice);
    const { segment, part } = awaited;
    if (shown !== null) {
      const have = shown.growing?.parts.length ?? 0;
      const isFar = segment >= shown.next + FAR_SEGMENTS ||
        (segment === shown.next && part !== null && part >= have + FAR_PARTS);
      if (isFar) {
        const fault = `_HLS_msn=${segment}: the playlist ends with segment ${
          shown.next - 1
        }; load it again without _HLS_msn`;
        throw new MillraceError("invalid_argument", fault);
      }
    }
    const isHere = () => {
      const now = this.shown(choice);
      if (now === null) return false;
      return now.next > segment || (part !== null && now.next === segment && (now.growing?.parts.length ?? 0) > part);
    };
    await this.#until(choice, isHere, part === null ? SEGMENT_WAIT_MS : PART_WAIT_MS, signal);
  }

  /** Part `p` of segment `n`, which is waited for if it is the next; null when there is none. Rejects as `arrived`. */
  async part(choice: LiveChoice, n: number, p: number, signal: AbortSignal): Promise<MadePart | null> {
    const isNext = () => {
      const now = this.shown(choice);
      if (now === null) return true;
      const have = now.growing?.parts.length ?? 0;
      return (n === now.next && p === have) || (n === now.next + 1 && p === 0);
    };
    const here = () => this.#feed(choice).segment(n)?.parts[p] ?? null;
    if (here() === null && isNext()) {
      await this.#until(
        choice,
        () => here() !== null || !isNext(),
        PART_WAIT_MS,
        signal,
      );
    }
    return here();
  }

  /** The parts of `shown` and what follows them, for its playlist. */
  playlistParts(
    choice: LiveChoice,
    { segments, growing, next }: Shown,
    targetS: number,
    initUrl: (first: number) => string,
  ): LivePlaylistParts {
    const feed = this.#feed(choice);
    const parts = growing?.parts ?? [];
    // It may have ended since.
    const hint = parts.at(-1)?.isLast === true ? { n: next + 1, p: 0 } : { n: next, p: parts.length };
    const told = new Map<number, readonly MadePart[]>();
    let ms = 0;
    for (const { n, durationMs } of [...segments].reverse()) {
      if (ms >= 3000 * targetS) break;
      ms += durationMs;
      told.set(n, feed.segment(n)?.parts ?? []);
    }
    return {
      targetS: PART_TARGET_S,
      skipS: 6 * targetS,
      of: told,
      growing: this.#stream.ended ? null : {
        n: next,
        parts,
        facts: growing && { ...growing.facts, initUrl: initUrl(growing.form.first) },
        hint,
      },
    };
  }

  /** Ends it. */
  close(): void {
    for (const feed of this.#feeds.values()) feed.close();
    this.#feeds.clear();
  }

  #feed(choice: LiveChoice): LiveParts {
    const key = keyOf(choice);
    let feed = this.#feeds.get(key);
    if (feed === undefined) {
      this.#makeRoom();
      const made: LiveParts = new LiveParts(this.#stream, this.#clock, choice, () => {
        // The parts of a broadcast that is over are still there.
        if (this.#feeds.get(key) === made && !this.#stream.ended) this.#feeds.delete(key);
      });
      feed = made;
    }
    this.#feeds.delete(key);
    this.#feeds.set(key, feed);
    feed.touch();
    return feed;
  }

  /**
   * Ends the feed that was not asked for longest, if there are too many. One that somebody waits for stays: who waits would
   * open it again, in place of another that is waited for. Throws `too_busy` when all are.
   */
  #makeRoom(): void {
    if (this.#feeds.size < MAX_FEEDS) return;
    for (const [oldest, old] of this.#feeds) {
      if (old.isAwaited) continue;
      old.close();
      this.#feeds.delete(oldest);
      return;
    }
    throw new MillraceError("too_busy", "players already wait for several sounds of this broadcast: ask again later");
  }
}

const keyOf = ({ audioWish, part }: LiveChoice) => JSON.stringify([audioWish, part]);

const LATE = () => new MillraceError("unavailable", "the next part of the broadcast has not come: ask again");
