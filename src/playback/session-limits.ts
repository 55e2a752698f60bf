/** How many sessions each caller may have, and which one ends when there is no room for another. */
import { MillraceError } from "../errors.ts";
import { type ShareHolder, Shares } from "../bytes/shares.ts";

/** Sessions at once, and shares of them. Each is small, but the swarms and readers of a session are not. */
export const SESSION_LIMITS = {
  total: 500,
  /** Whatever strangers do, the programs of this machine can start these. */
  reserved: 100,
  /** A page that plays has one session, and a few of streams it played before. */
  page: 4,
  /** A television or a proxy for a household. */
  other: 16,
};

/**
 * A session that did nothing for this long may make room, ms. A viewer who zaps leaves up to four behind in a second. A
 * player that only paused loses nothing unless it holds a connection: its session comes back with its next request. Those
 * that hold one go last.
 */
const EVICT_IDLE_MS = 3_000;

/** The facts about a session that matter here. */
export interface LimitedSession {
  /** Time since its player last did something, ms. */
  readonly idleMs: number;
  /** Whether a client still has a connection on which it reads or pauses. */
  readonly hasBody: boolean;
  stop(reason: string): void;
}

/** Sessions by holder. */
export class SessionLimits {
  readonly #shares = new Shares(SESSION_LIMITS);
  readonly #holders = new Map<LimitedSession, ShareHolder>();

  /**
   * Makes sure that `holder` may start one more session. If necessary it stops an idle session of the holder, or of a
   * stranger if this machine's own programs need the place, with `reason`. Throws `too_busy`.
   */
  makeRoom(holder: ShareHolder, reason: string): void {
    const shortage = this.#shares.shortage(holder);
    if (shortage === null) return;
    const mayGo = ({ kind, name }: ShareHolder) =>
      holder.kind === "own" && shortage === "total" ? kind !== "own" : kind === holder.kind && name === holder.name;
    const idle = this.#longestIdle(mayGo, false) ?? this.#longestIdle(mayGo, true);
    if (idle === null) throw new MillraceError("too_busy", shortageText(holder, shortage));
    idle.stop(reason);
  }

  /** `session` runs and is `holder`'s. */
  add(session: LimitedSession, holder: ShareHolder): void {
    this.#holders.set(session, holder);
    this.#shares.take(holder);
  }

  /** `session` ended. */
  remove(session: LimitedSession): void {
    const holder = this.#holders.get(session);
    if (holder !== undefined && this.#holders.delete(session)) this.#shares.giveBack(holder);
  }

  #longestIdle(mayGo: (holder: ShareHolder) => boolean, hasBody: boolean): LimitedSession | null {
    let found: LimitedSession | null = null;
    for (const [session, holder] of this.#holders) {
      if (!mayGo(holder) || session.hasBody !== hasBody || session.idleMs < EVICT_IDLE_MS) continue;
      if (found === null || session.idleMs > found.idleMs) found = session;
    }
    return found;
  }
}

function shortageText({ kind }: ShareHolder, shortage: "share" | "total"): string {
  const what = shortage === "total"
    ? "too many sessions are running"
    : kind === "page"
    ? `pages of other sites have ${SESSION_LIMITS.page} sessions already`
    : `this address has ${SESSION_LIMITS.other} sessions already`;
  return `${what}: stop one by its command_url, or wait until its player has been idle for a minute`;
}
