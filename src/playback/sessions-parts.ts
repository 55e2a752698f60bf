/** What the sessions of an engine need. */
import type { Resolver } from "../content/resolve.ts";
import type { LiveSwarms } from "../live/swarm/live-source.ts";
import type { ForeignReader } from "../media/model/foreign-reader.ts";
import type { AudioEncoder, AudioTarget } from "../media/model/audio-target.ts";
import type { Clock, Logger } from "../ports.ts";
import type { SwarmManager } from "../swarm/types.ts";
import type { AnyMetainfo } from "../metainfo/live.ts";
import type { ChannelOrigins } from "./channel/channel-selector.ts";
import type { CushionSetting } from "./cushion.ts";
import type { LiveWindowMaker } from "./live/live-streams.ts";
import type { SessionObserver } from "./session-base.ts";
import type { SessionRecords } from "./session-records.ts";

/** What the sessions need. */
export interface SessionsParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly swarms: SwarmManager;
  readonly live: LiveSwarms;
  /** Channels that come by HTTP; null: none are played. */
  readonly channels: ChannelOrigins | null;
  /** How much of a broadcast is kept for its players. */
  readonly liveWindow: LiveWindowMaker;
  readonly resolver: Resolver;
  readonly startTimeoutMs: number;
  /** How players are held up when the swarm is slower than the film, unless a start says. */
  readonly cushion: CushionSetting;
  /** Converts sound to AAC; null: sound is not converted. */
  readonly audioEncoder: AudioEncoder | null;
  /** Reads containers that we have no reader for; null: they are refused. */
  readonly foreignReader: ForeignReader | null;
  /** The format of converted sound. */
  readonly audioTarget: AudioTarget;
  /** The metadata of a stream that is being started is known now. */
  readonly onMetadata: (metainfo: AnyMetainfo) => void;
  /** Records that bring back sessions that ended by themselves. Default: those of this run. */
  readonly records?: SessionRecords;
  readonly observer?: SessionObserver;
}
