/** Opens the channels of an engine that come by HTTP. */
import { toHex } from "../../bytes/hex.ts";
import { readPlayerAddress } from "../../content/analysis/player-address.ts";
import { checkedTarget, parseHttpUrl } from "../../content/guarded-target.ts";
import { mayNamePrivate, type ResolverParts } from "../../content/resolve.ts";
import { MillraceError } from "../../errors.ts";
import type { StreamOrigin } from "../live/live-streams.ts";
import { INACTIVITY, type Session } from "../session-base.ts";
import { AccountConnections, RANKS } from "./account-connections.ts";
import type { AddressPorts } from "./address-events.ts";
import { type ChannelCaller, type ChannelOrigins, type ChannelSelector, playerOf } from "./channel-selector.ts";
import { ChannelSource } from "./channel-source.ts";
import { OpeningTurns } from "./opening-turns.ts";

/** Channels at once. Each is a connection, and a window in memory. */
const MAX_CHANNELS = 256;
/** Channels of which nothing has come yet: more than a household begins to record at the same minute. */
const MAX_OPENING = 32;
/** The same for one player, which shows one of them: upstreams that hang leave room for others. */
const MAX_OPENING_OF_ONE = 8;
/**
 * Channels that stay open although nobody watches them any more, for viewers who come back. A viewer who changes fast leaves
 * one behind each time, and all of them are received.
 */
const MAX_LEFT = 8;

/** The owner of sessions that record (`SessionIdentity`). */
export const RECORDER = "recorder";
/**
 * A viewer without a connection who asks for nothing for this long has left, ms. Players of HLS ask for something every two
 * to five seconds.
 */
const LEFT_AFTER_MS = { ts: 1500, hls: 6000, file: 1500 };

/** The part of a session that shows whether somebody watches it, and ends it. */
export type ChannelSession = Pick<Session, "identity" | "hasBody" | "idleMs" | "stop">;

/** Which addresses may be opened. */
export type ChannelReach = Pick<ResolverParts, "allowPrivateFetch" | "isFromPublic">;

/** A channel that is being read. */
interface Running {
  readonly source: ChannelSource;
  /** The player that opened it. */
  readonly player: string;
}

/** The channels that are being read. */
export class ChannelSources implements ChannelOrigins {
  readonly #ports: AddressPorts;
  readonly #reach: ChannelReach;
  readonly #running = new Map<string, Running>();
  readonly #turns: OpeningTurns;
  /** The connections of accounts. */
  readonly accounts: AccountConnections;
  #sessions: () => readonly ChannelSession[] = () => [];

  constructor(ports: AddressPorts, reach: ChannelReach) {
    this.#ports = ports;
    this.#reach = reach;
    this.accounts = new AccountConnections(ports.clock);
    this.#turns = new OpeningTurns(ports.clock, (player) => this.#openingOf(player) < MAX_OPENING_OF_ONE);
  }

  /** From now on `sessions` decides which channels count as watched and recorded. Before, all are watched. */
  watchedBy(sessions: () => readonly ChannelSession[]): void {
    this.#sessions = sessions;
  }

  /** Channels that are being read now. */
  list(): readonly ChannelSource[] {
    return [...this.#running.values()].map(({ source }) => source);
  }

  async origin(selector: ChannelSelector, caller: ChannelCaller, signal: AbortSignal): Promise<StreamOrigin> {
    const { name, isRecorded = false } = selector;
    for (const { address } of selector.addresses) parseHttpUrl(readPlayerAddress(address).url);
    const first = selector.addresses[0]!.address;
    const set = JSON.stringify(selector.addresses.map(({ address }) => address).sort());
    // One that began with another address may play this one by now.
    const find = () => this.list().find((one) => one.set === set && (one.first === first || one.address === first));
    const player = playerOf(caller);
    // A recording has its time, and there are few. Nothing is done for a change that another one follows.
    if (find() === undefined && !isRecorded) await this.#turns.take(player, signal);
    // Beside the look into the library: both are waits before the upstream is asked.
    const hashing = infohashOf(selector.addresses.length === 1 ? first : first + set);
    const addresses = await Promise.all(
      selector.addresses.map(async ({ address, named, item, account = null, ...by }) => {
        const context = { callerIsLocal: caller.callerIsLocal || by.mayNamePrivate };
        return { address, item, account, allowPrivate: await mayNamePrivate(this.#reach, context, named) };
      }),
    );
    const running = find();
    if (running !== undefined) {
      // It was perhaps opened by somebody who may reach more.
      for (const { address } of addresses.filter(({ allowPrivate }) => !allowPrivate)) {
        await checkedTarget(this.#ports, parseHttpUrl(readPlayerAddress(address).url), false, signal);
      }
    }
    const infohashHex = running?.metainfo.infohashHex ?? await hashing;
    return {
      infohashHex,
      acquire: () => {
        this.#closeLeft();
        if (this.#running.size >= MAX_CHANNELS) throw new MillraceError("too_busy", "too many channels at once");
        if (this.list().filter(({ supply }) => !supply.started).length >= MAX_OPENING) {
          throw new MillraceError("too_busy", "many channels are being opened: try again in a moment");
        }
        const rank = () => this.#rankOf(infohashHex, isRecorded);
        const { accounts } = this;
        const swarm = new ChannelSource({ ports: this.#ports, infohashHex, name, addresses, set, accounts, rank });
        this.#running.set(infohashHex, { source: swarm, player });
        return {
          swarm,
          release: () => {
            swarm.close();
            if (this.#running.get(infohashHex)?.source === swarm) this.#running.delete(infohashHex);
          },
        };
      },
    };
  }

  /** Channels that `player` opened, of which nothing has come yet. */
  #openingOf(player: string): number {
    return [...this.#running.values()].filter((one) => one.player === player && !one.source.supply.started).length;
  }

  /** Closes those that were left longest ago, so that one more can be left. Its players bring it back if they go on. */
  #closeLeft(): void {
    const users = Map.groupBy(this.#sessions(), ({ identity }) => identity.infohashHex);
    const left = [...this.#running.keys()].flatMap((infohashHex) => {
      const own = users.get(infohashHex) ?? [];
      const isLeft = own.length > 0 && own.every((one) => rankOf(one) === RANKS.idle);
      return isLeft ? [{ own, idleMs: Math.min(...own.map(({ idleMs }) => idleMs)) }] : [];
    });
    left.sort((a, b) => b.idleMs - a.idleMs);
    for (const { own } of left.slice(0, Math.max(0, left.length - MAX_LEFT))) {
      for (const session of own) session.stop(INACTIVITY);
    }
  }

  /** What the channel's connection is for. It has no session while it starts. */
  #rankOf(infohashHex: string, isRecorded: boolean): number {
    const users = this.#sessions().filter(({ identity }) => identity.infohashHex === infohashHex);
    if (users.length === 0) return isRecorded ? RANKS.recorded : RANKS.watched;
    return Math.max(...users.map(rankOf));
  }
}

/** How much a session counts. */
function rankOf({ identity: { owner, output }, hasBody, idleMs }: ChannelSession): number {
  if (owner === RECORDER) return RANKS.recorded;
  return hasBody || idleMs < LEFT_AFTER_MS[output] ? RANKS.watched : RANKS.idle;
}

async function infohashOf(address: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(address));
  return toHex(new Uint8Array(hash));
}
