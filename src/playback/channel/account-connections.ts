/**
 * Connections to providers, of which each account allows so many at once: a provider cuts off, or blocks, whoever opens
 * more.
 */
import { sleep, withSignal } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import type { ChannelAccount } from "./channel-selector.ts";

/**
 * What a connection is for. Recordings count most: nobody is there to notice that one does not take place, while a viewer
 * can stop it.
 */
export const RANKS = { recorded: 2, watched: 1, idle: 0 } as const;

/** Somebody who waits for a connection looks again after this, ms. */
const LOOK_EVERY_MS = 250;

/** What has a connection, or wants one. */
export interface ConnectionUser {
  /** One of `RANKS`, now. */
  rank(): number;
  /** Something of a higher rank needs the connection: it has to be given back soon. */
  giveUp(reason: MillraceError): void;
}

interface Held {
  readonly user: ConnectionUser;
  readonly isOver: Promise<void>;
}

/** Counts the connections of all accounts. */
export class AccountConnections {
  readonly #clock: Clock;
  /** By list. */
  readonly #held = new Map<number, Set<Held>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes a connection of `account` (null: of nobody's, which are not counted), if need be from the user of the lowest
   * rank below that of `user`. Waits at most `waitMs` for one. Resolves with a function that gives it back. Rejects with
   * `too_busy`, which says what they are used for, or the signal's reason.
   */
  async take(
    account: ChannelAccount | null,
    user: ConnectionUser,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<() => void> {
    if (account === null) return () => {};
    const untilMs = this.#clock.monotonic() + waitMs;
    for (;;) {
      signal.throwIfAborted();
      const held = this.#held.get(account.list) ?? new Set<Held>();
      if (account.maxConnections === 0 || held.size < account.maxConnections) {
        return this.#add(account.list, held, user);
      }
      const least = [...held].reduce((a, b) => b.user.rank() < a.user.rank() ? b : a);
      if (least.user.rank() < user.rank()) {
        least.user.giveUp(new MillraceError("too_busy", `${allowed(account)}: something else needed this one`));
        await withSignal(least.isOver, signal);
        continue;
      }
      if (this.#clock.monotonic() >= untilMs) throw refusal(account, held);
      await sleep(this.#clock, LOOK_EVERY_MS, signal);
    }
  }

  #add(list: number, held: Set<Held>, user: ConnectionUser): () => void {
    let end = () => {};
    const one: Held = { user, isOver: new Promise((resolve) => end = resolve) };
    held.add(one);
    this.#held.set(list, held);
    return () => {
      held.delete(one);
      if (held.size === 0 && this.#held.get(list) === held) this.#held.delete(list);
      end();
    };
  }
}

function allowed({ name, maxConnections }: ChannelAccount): string {
  return `the list ${JSON.stringify(name)} allows ${maxConnections} connection${
    maxConnections === 1 ? "" : "s"
  } at once`;
}

function refusal(account: ChannelAccount, held: ReadonlySet<Held>): MillraceError {
  const count = (rank: number, one: string) => {
    const found = [...held].filter(({ user }) => user.rank() === rank).length;
    return found === 0 ? [] : [`${found} ${one}`];
  };
  const uses = [
    ...count(RANKS.recorded, "recorded"),
    ...count(RANKS.watched, "watched"),
    ...count(RANKS.idle, "being checked or left"),
  ].join(", ");
  return new MillraceError(
    "too_busy",
    `${
      allowed(account)
    }, and all are in use (${uses}): stop something that plays, or raise max_connections of the list`,
  );
}
