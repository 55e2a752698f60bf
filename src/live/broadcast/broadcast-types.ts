/** What callers of `engine.broadcast` and `engine.relay` pass in and get back. */
import type { LiveMetainfo } from "../../metainfo/live.ts";
import type { LiveInput } from "./input.ts";
import type { LiveSwarmStatus } from "../swarm/live-swarm-status.ts";

/** How a broadcast is set up. */
export interface BroadcastOptions {
  /** The stream. When it ends the broadcast ends for all viewers, with a piece that says so. */
  readonly input: LiveInput;
  /** Title, as viewers see it; part of the id. */
  readonly name: string;
  /**
   * A directory for this broadcast alone: key and position (mode 600), transport file, addresses of viewers. A broadcast
   * started with the same directory continues under the same id. null: nothing is kept, each start is a new broadcast.
   */
  readonly directory: string | null;
  /**
   * Bytes per second, 1 to 12,500,000; part of the id. Viewers use it until they have half a second of the stream. Default:
   * measured over the first seconds of the first start.
   */
  readonly bytesPerS?: number;
  /** A multiple of 16 KiB up to 1 MiB; part of the id. Default: about 0.2 s of the stream, 32 to 64 KiB. */
  readonly pieceLengthBytes?: number;
  /** How far back viewers can go, s, 10–7200. Default 60. */
  readonly windowS?: number;
  /** Tracker tiers (BEP 12). Default none. */
  readonly trackers?: readonly (readonly string[])[];
  /** DHT nodes to name in the transport file, `host:port`. Default none. */
  readonly nodes?: readonly string[];
  /** BEP 27: trackers and named peers only. Default false. */
  readonly isPrivate?: boolean;
  /** Upload of this broadcast, bytes/s. 0 (default): only the engine's limit. */
  readonly uploadLimitBytesPerSecond?: number;
  /** Gives up while the stream's bitrate is still being measured. */
  readonly signal?: AbortSignal;
}

/** Figures of a broadcast. */
export interface BroadcastStatus extends LiveSwarmStatus {
  /** Bytes per second that the source delivered over the last 10 s; null before the first 2 s. */
  readonly inputBytesPerSecond: number | null;
  /** Newest piece; -1 before the first. */
  readonly headSeq: number;
  /** Bytes of the source that did not belong to transport packets. */
  readonly droppedBytes: number;
  /** Why the source was last lost; null while it delivers. */
  readonly lost: string | null;
}

/** A running broadcast. */
export interface Broadcast {
  readonly metainfo: LiveMetainfo;
  /** 40 hexadecimal characters. */
  readonly contentId: string;
  /** With the trackers; without addresses of ours. */
  readonly magnet: string;
  readonly transportFile: Uint8Array;
  status(): BroadcastStatus;
  /**
   * Resolves when the source ended and the last piece is published; the swarm is served until `close`. Rejects when the
   * state cannot be written, or as the input does.
   */
  readonly done: Promise<void>;
  /** Stops. Without an end of the source viewers wait for a restart. */
  close(): Promise<void>;
}

/** A support node: passes a broadcast on without playing it. */
export interface Relay {
  readonly metainfo: LiveMetainfo;
  /** 40 hexadecimal characters. */
  readonly contentId: string;
  status(): LiveSwarmStatus;
  close(): Promise<void>;
}

/** Our part in one broadcast. */
export interface LiveMembership {
  readonly metainfo: LiveMetainfo;
  readonly role: "source" | "viewer";
  status(): LiveSwarmStatus;
}
