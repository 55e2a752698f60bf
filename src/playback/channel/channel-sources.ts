/** Opens the channels of an engine that come by HTTP. */
import { toHex } from "../../bytes/hex.ts";
import { readPlayerAddress } from "../../content/analysis/player-address.ts";
import { checkedTarget, parseHttpUrl } from "../../content/guarded-target.ts";
import { mayNamePrivate, type ResolverParts } from "../../content/resolve.ts";
import { MillraceError } from "../../errors.ts";
import type { StreamOrigin } from "../live/live-streams.ts";
import type { Session } from "../session-base.ts";
import { AccountConnections, RANKS } from "./account-connections.ts";
import type { AddressPorts } from "./address-events.ts";
import type { ChannelOrigins, ChannelSelector } from "./channel-selector.ts";
import { ChannelSource } from "./channel-source.ts";

/** Channels at once. Each is a connection, and a window in memory. */
const MAX_CHANNELS = 256;
/** Channels of which nothing has come yet: more than a household begins to record at the same minute. */
const MAX_OPENING = 32;

/** The owner of sessions that record (`SessionIdentity`). */
export const RECORDER = "recorder";
/**
 * A viewer without a connection who asks for nothing for this long has left, ms. Players of HLS ask for something every two
 * to five seconds.
 */
const LEFT_AFTER_MS = { ts: 1500, hls: 6000, file: 1500 };

/** The part of a session that shows whether somebody watches it. */
export type ChannelSession = Pick<Session, "identity" | "hasBody" | "idleMs">;

/** Which addresses may be opened. */
export type ChannelReach = Pick<ResolverParts, "allowPrivateFetch" | "isFromPublic">;

/** The channels that are being read. */
export class ChannelSources implements ChannelOrigins {
  readonly #ports: AddressPorts;
  readonly #reach: ChannelReach;
  readonly #running = new Map<string, ChannelSource>();
  /** The connections of accounts. */
  readonly accounts: AccountConnections;
  #sessions: () => readonly ChannelSession[] = () => [];

  constructor(ports: AddressPorts, reach: ChannelReach) {
    this.#ports = ports;
    this.#reach = reach;
    this.accounts = new AccountConnections(ports.clock);
  }

  /** From now on `sessions` decides which channels count as watched and recorded. Before, all are watched. */
  watchedBy(sessions: () => readonly ChannelSession[]): void {
    this.#sessions = sessions;
  }

  /** Channels that are being read now. */
  list(): readonly ChannelSource[] {
    return [...this.#running.values()];
  }

  async origin(selector: ChannelSelector, callerIsLocal: boolean, signal: AbortSignal): Promise<StreamOrigin> {
    const { name, isRecorded = false } = selector;
    const addresses = await Promise.all(
      selector.addresses.map(async ({ address, named, item, account = null, ...by }) => {
        parseHttpUrl(readPlayerAddress(address).url);
        const context = { callerIsLocal: callerIsLocal || by.mayNamePrivate };
        return { address, item, account, allowPrivate: await mayNamePrivate(this.#reach, context, named) };
      }),
    );
    const first = addresses[0]!.address;
    const set = JSON.stringify(addresses.map(({ address }) => address).sort());
    // One that began with another address may play this one by now.
    const running = this.list().find((one) => one.set === set && (one.first === first || one.address === first));
    if (running !== undefined) {
      // It was perhaps opened by somebody who may reach more.
      for (const { address } of addresses.filter(({ allowPrivate }) => !allowPrivate)) {
        await checkedTarget(this.#ports, parseHttpUrl(readPlayerAddress(address).url), false, signal);
      }
    }
    const infohashHex = running?.metainfo.infohashHex ?? await infohashOf(addresses.length === 1 ? first : first + set);
    return {
      infohashHex,
      acquire: () => {
        if (this.#running.size >= MAX_CHANNELS) throw new MillraceError("too_busy", "too many channels at once");
        if (this.list().filter(({ node }) => !node.started).length >= MAX_OPENING) {
          throw new MillraceError("too_busy", "many channels are being opened: try again in a moment");
        }
        const rank = () => this.#rankOf(infohashHex, isRecorded);
        const { accounts } = this;
        const swarm = new ChannelSource({ ports: this.#ports, infohashHex, name, addresses, set, accounts, rank });
        this.#running.set(infohashHex, swarm);
        return {
          swarm,
          release: () => {
            swarm.close();
            if (this.#running.get(infohashHex) === swarm) this.#running.delete(infohashHex);
          },
        };
      },
    };
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
