/** How a start names a channel that comes by HTTP, and what it gets for it. */
import { withSignal } from "../../bytes/deadline.ts";
import { OWN, type ShareHolder } from "../../bytes/shares.ts";
import { MillraceError } from "../../errors.ts";
import type { StreamOrigin } from "../live/live-streams.ts";

/** An account at a provider: a list of the user's. */
export interface ChannelAccount {
  /** Id of the list. */
  readonly list: number;
  /** Its name. */
  readonly name: string;
  /** Connections that the provider allows at once; 0: any number. */
  readonly maxConnections: number;
}

/** One of the addresses of a channel. */
export interface ChannelAddress {
  /** http or https; the fields to send stand behind a `|`, as players write them. */
  readonly address: string;
  /** The same as the library has it, where that may lead to is known. */
  readonly named: string;
  /** The caller that gave it may name addresses in the private network. */
  readonly mayNamePrivate: boolean;
  /** Item of the library; null: none. */
  readonly item: number | null;
  /** The account whose connection it takes; null or absent: none that is known. */
  readonly account?: ChannelAccount | null;
}

/** A channel: its addresses stand in for each other. */
export interface ChannelSelector {
  readonly kind: "channel";
  /** Title. */
  readonly name: string;
  /** At least one; the first is played first, and names the channel. */
  readonly addresses: readonly ChannelAddress[];
  /** True when the channel is started to be recorded. Default false. */
  readonly isRecorded?: boolean;
}

/** The caller that starts a channel. */
export interface ChannelCaller {
  /** Whether the caller may name addresses in the private network. */
  readonly callerIsLocal: boolean;
  /** Whose share its sessions take. Default: this machine's own programs. */
  readonly holder?: ShareHolder;
  /** Name of the player, if it gave one. */
  readonly pid?: string | undefined;
  readonly clientHost: string;
}

/** What changes of channel of one player have in common. On other machines the address, because anybody can invent names. */
export function playerOf({ holder = OWN, pid, clientHost }: ChannelCaller): string {
  return JSON.stringify([holder.kind, holder.kind === "own" ? pid ?? clientHost : holder.name]);
}

/** Finds channels; `ChannelSources` implements it. */
export interface ChannelOrigins {
  /**
   * The channel of `selector`, once it runs or may be opened. The infohash of a channel that has one address is the SHA-1 of
   * it. Rejects with `invalid_argument`, with `denied` where the channel runs and the caller may not name one of its
   * addresses, and with `too_busy` when the caller has changed to others meanwhile.
   */
  origin(selector: ChannelSelector, caller: ChannelCaller, signal: AbortSignal): Promise<StreamOrigin>;
}

/** As `ChannelOrigins.origin`; rejects with `unsupported_media` where `channels` is null. */
export async function channelOrigin(
  channels: ChannelOrigins | null,
  selector: ChannelSelector,
  caller: ChannelCaller,
  signal: AbortSignal,
): Promise<StreamOrigin> {
  if (channels === null) throw new MillraceError("unsupported_media", "channels that come by HTTP are not played here");
  return await withSignal(channels.origin(selector, caller, signal), signal);
}
