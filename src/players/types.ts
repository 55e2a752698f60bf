/** What players are, whatever their kind: section 2.5 of the HTTP API, and what the engine does with each. */

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

/** What a player reads: the file as it is, MPEG TS, or HLS. */
export type PlayerOutput = "file" | "ts" | "hls";

/** A stream that was started for a player. */
export interface PlayerStream {
  /** Two streams with the same id are one and the same. */
  readonly id: string;
  /** Address of this engine that the player reads. It holds nothing but characters that RFC 3986 allows, no apostrophe. */
  readonly url: string;
  /** Path below the engine's base, for pages of its own. Default: that of `url`, which has it after the base. */
  readonly path?: string;
  /** Name for people. It may come from a stranger's torrent: it is data, never part of a command. */
  readonly title: string;
  readonly isLive: boolean;
  /**
   * Resolves when a player finds enough to begin without a wait: of HLS two segments. For players that give up on a stream
   * whose beginning is slow. Rejects as reading does.
   */
  ready(signal: AbortSignal): Promise<void>;
  /** Why it does not play, as far as the engine knows; null when nothing is wrong. */
  trouble(): string | null;
  /** The player needs it no longer. */
  stop(): void;
}

/** What a player needs a stream to be. */
export type StreamNeeds = Pick<PlayerDevice, "output" | "host" | "sound" | "isForeignPage">;

/** Starts the stream that was asked for. Rejects as playback does. */
export type StartStream = (needs: StreamNeeds, signal: AbortSignal) => Promise<PlayerStream>;

/** What a player does. */
export interface PlayerStatus {
  readonly state: "idle" | "playing" | "paused";
  /** Seconds from the beginning; null when nothing plays or the player does not say. */
  readonly positionSeconds: number | null;
  /** Null for a broadcast, too. */
  readonly durationSeconds: number | null;
  /** 0–100; absent or null when the player does not say. */
  readonly volumePercent?: number | null;
}

/** The status of a player that plays nothing. */
export const IDLE: PlayerStatus = { state: "idle", positionSeconds: null, durationSeconds: null };

/** Commands to a player while it plays. */
export type PlayerCommand =
  | { readonly kind: "pause" | "resume" | "stop" }
  | { readonly kind: "seek"; readonly positionSeconds: number };

/** Who wants something of a player. */
export interface PlayerCaller {
  /** A program on this machine, or a page of the engine's own there. */
  readonly isLocal: boolean;
}

/** A player in reach. Every promise settles soon after `signal` fires, rejected with its reason. */
export interface PlayerDevice {
  readonly facts: Player;
  /** Only callers on this machine see it and use it, since using it starts a program here. */
  readonly localOnly: boolean;
  /** What it is given to read. */
  readonly output: PlayerOutput;
  /** "aac": it decodes AAC and MP3 alone, so other sound is made into AAC. Default: whatever `output` carries. */
  readonly sound?: "aac";
  /** It reads the stream as a web page of another origin, which has to be allowed to. Default false. */
  readonly isForeignPage?: boolean;
  /** Address of the machine that it is on; null: this one. */
  readonly host: string | null;
  /** Resolves when it plays `stream`. Rejects with `unavailable` and the player's own words when it will not. */
  open(stream: PlayerStream, signal: AbortSignal): Promise<void>;
  status(signal: AbortSignal): Promise<PlayerStatus>;
  /** Resolves when the player has taken the command. Rejects with `conflict` when it plays nothing. */
  control(command: PlayerCommand, signal: AbortSignal): Promise<void>;
  /** Sets how loud it is, 0–100; absent where that cannot be set. Rejects as `control`. */
  setVolume?(percent: number, signal: AbortSignal): Promise<void>;
}

/** Looks for players of one kind. */
export interface PlayerFinder {
  /** Players in reach now, the same object for the same player each time. */
  list(): Promise<readonly PlayerDevice[]>;
  /** Lets all of its players go. */
  close(): Promise<void>;
}
