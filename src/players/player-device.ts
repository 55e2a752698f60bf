/** Types that all kinds of players share: section 2.5 of the HTTP API, and the interface to the engine. */

/** One player, section 2.5. */
export interface Player {
  /** Unique among all players of the engine. */
  readonly id: string;
  readonly type: "proxy" | "aircast";
  /** Null for type `proxy`. */
  readonly protocol: string | null;
  readonly name: string;
  /** URL, or null. */
  readonly icon: string | null;
}

/** What a player reads: the original file, MPEG TS, or HLS. */
export type PlayerOutput = "file" | "ts" | "hls";

/** A stream started for a player. */
export interface PlayerStream {
  /** Streams with the same id are the same stream. */
  readonly id: string;
  /** Address on this engine that the player reads. It has only characters that RFC 3986 allows, and no apostrophe. */
  readonly url: string;
  /** Path below the engine's base, for the engine's own pages. Default: that of `url`. */
  readonly path?: string;
  /** Name for people. It may come from a stranger's torrent: it is data, never part of a command. */
  readonly title: string;
  readonly isLive: boolean;
  /**
   * Resolves when there is enough to begin without a wait (two segments of HLS), for players that give up on a stream with a
   * slow beginning. Rejects as reading does.
   */
  ready(signal: AbortSignal): Promise<void>;
  /** Why the stream does not play, as far as the engine knows; null when nothing is wrong. */
  trouble(): string | null;
  /** To be called when the player no longer needs the stream. */
  stop(): void;
}

/** A player's requirements for a stream. */
export type StreamNeeds = Pick<PlayerDevice, "output" | "host" | "sound" | "isForeignPage">;

/** Starts the requested stream. Rejects as playback does. */
export type StartStream = (needs: StreamNeeds, signal: AbortSignal) => Promise<PlayerStream>;

/** A player's state. */
export interface PlayerStatus {
  readonly state: "idle" | "playing" | "paused";
  /** Seconds from the beginning; null when nothing plays or it is unknown. */
  readonly positionSeconds: number | null;
  /** Null also for a broadcast. */
  readonly durationSeconds: number | null;
  /** 0–100; absent or null when unknown. */
  readonly volumePercent?: number | null;
}

/** The status of a player that plays nothing. */
export const IDLE: PlayerStatus = { state: "idle", positionSeconds: null, durationSeconds: null };

/** Commands to a player while it plays. */
export type PlayerCommand =
  | { readonly kind: "pause" | "resume" | "stop" }
  | { readonly kind: "seek"; readonly positionSeconds: number };

/** The caller of a player's functions. */
export interface PlayerCaller {
  /** Whether it is a program, or a page of the engine's own, on this machine. */
  readonly isLocal: boolean;
}

/** A player in reach. Every promise settles soon after `signal` fires, rejected with its reason. */
export interface PlayerDevice {
  readonly facts: Player;
  /** Whether only callers on this machine may see and use it, because using it starts a program here. */
  readonly localOnly: boolean;
  /** The output that it reads. */
  readonly output: PlayerOutput;
  /** "aac": it decodes only AAC and MP3, so other sound is converted to AAC. Default: whatever `output` carries. */
  readonly sound?: "aac";
  /** Whether it reads the stream as a web page of another origin, which needs permission. Default false. */
  readonly isForeignPage?: boolean;
  /** Address of its machine; null: this one. */
  readonly host: string | null;
  /** Plays `stream`; resolves when it plays. Rejects with `unavailable` and the player's own message when it will not. */
  open(stream: PlayerStream, signal: AbortSignal): Promise<void>;
  status(signal: AbortSignal): Promise<PlayerStatus>;
  /** Sends a command; resolves when the player has taken it. Rejects with `conflict` when it plays nothing. */
  control(command: PlayerCommand, signal: AbortSignal): Promise<void>;
  /** Sets the volume, 0–100; absent if it cannot be set. Rejects as `control`. */
  setVolume?(percent: number, signal: AbortSignal): Promise<void>;
}

/** Looks for players of one kind. */
export interface PlayerFinder {
  /** Players in reach now, the same object for the same player each time. */
  list(): Promise<readonly PlayerDevice[]>;
  /** Releases all of its players. */
  close(): Promise<void>;
}
