/** What every route gets: the engine's parts and facts about the request that the access check found. */
import type { FrontName } from "../config/front-names.ts";
import type { TranscodeAudio } from "../media/model/audio-target.ts";
import type { Context } from "hono";
import type { Metrics } from "../metrics/metrics.ts";
import type { Sessions } from "../playback/sessions.ts";
import type { CacheFigures, EgressFacts } from "../playback/stat.ts";
import type { PagePlayers } from "../players/pages/page-players.ts";
import type { Clock, Logger, RequestInfo, RuntimeFacts } from "../ports.ts";
import type { Lease } from "../swarm/leases.ts";
import type { Swarm, SwarmTarget } from "../swarm/types.ts";
import type { AccessPolicy } from "./address.ts";
import type { RequestAdmission } from "./admission.ts";
import type { ApiParts } from "./api/parts.ts";
import type { FrontStates } from "./fronts/states.ts";
import type { Page } from "./page.ts";
import type { RequestCaller } from "./request-caller.ts";
import type { SentSessions } from "./sent-sessions.ts";

export type { FrontName } from "../config/front-names.ts";

/** Torrents that are downloaded whole. */
export interface WholeTorrents {
  /**
   * Where their files are, each torrent's in a folder named after its infohash; null: nothing is kept whole, because pieces are in
   * memory, or make room for others.
   */
  readonly directory: string | null;
  /** As `SwarmManager.acquire`. */
  acquire(target: SwarmTarget): Lease<Swarm>;
  /** Removes a torrent's pieces. Rejects with `conflict` while somebody uses them. */
  remove(infohashHex: string): Promise<void>;
}

/** Parts of the engine that routes use. */
export interface HttpParts {
  readonly sessions: Sessions;
  /** How full the piece cache is now. */
  readonly cacheFigures: () => CacheFigures;
  /** The ways out of this machine. Absent: the system's. */
  readonly egressFacts?: () => EgressFacts;
  readonly policy: AccessPolicy;
  /** Whether the engine itself sent a request with these fields. */
  readonly isOwnRequest: (headers: Headers) => Promise<boolean>;
  readonly admission: RequestAdmission;
  readonly publicUrl: string | null;
  /** Which sound is converted to AAC when a request does not say. */
  readonly transcodeAudio: TranscodeAudio;
  /** Broadcasts as fragmented MP4 are low-latency HLS. */
  readonly lowLatency: boolean;
  /** Prefixes that serve playback, `engine` first. */
  readonly prefixes: readonly string[];
  /** Open web pages that play streams from other devices. */
  readonly pages: PagePlayers;
  /** Sessions that were sent to players which are pages of other origins. */
  readonly sentSessions: SentSessions;
  /** Other programs' interfaces that are also served. */
  readonly fronts: readonly FrontName[];
  /** Those of them that pages of every origin may use. */
  readonly frontPages: readonly FrontName[];
  readonly frontStates: FrontStates;
  readonly whole: WholeTorrents;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** All metrics, as Prometheus reads them. */
  readonly scrape: () => string;
  readonly runtime: RuntimeFacts;
  /** Further parts that the JSON method API needs. */
  readonly api: Omit<
    ApiParts,
    "policy" | "sessions" | "sentSessions" | "clock" | "log" | "metrics" | "runtime" | "pictures"
  >;
}

/** Hono's variables. */
export interface HttpEnv {
  Bindings: {
    info: RequestInfo;
    /** The embedding program has checked the caller, which counts as a program on this machine. Default false. */
    isChecked?: boolean;
  };
  Variables: {
    /** Names this request in the log and, as `X-Request-Id`, in its response. */
    requestId: string;
    caller: RequestCaller;
    /** The caller's page as playback treats it: `none` if the address itself is the permission. */
    page: Page;
  };
}

/** A route's context. */
export type HttpContext = Context<HttpEnv>;
