/** What HTTP is given: of all open parts those that pages, streams and the method API use. */
import { guardedFetch } from "../content/fetch-guard.ts";
import { RequestAdmission } from "../http/admission.ts";
import type { HttpParts } from "../http/context.ts";
import type { FrontStates } from "../http/fronts/states.ts";
import { SentSessions } from "../http/sent-sessions.ts";
import { engineFigures } from "../metrics/engine-figures.ts";
import { exposition } from "../metrics/exposition.ts";
import type { LoopDelay } from "../metrics/loop-delay.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { CushionSetting } from "../playback/cushion.ts";
import type { Sessions } from "../playback/sessions.ts";
import type { Recordings } from "../recordings/recordings.ts";
import type { PieceCache } from "../storage/piece-store.ts";
import type { AccessParts } from "./access.ts";
import { SourceDesk } from "./broadcast-desk.ts";
import type { ContentParts, KeptContent } from "./content.ts";
import { egressFacts } from "./egress.ts";
import type { Ground } from "./ground.ts";
import type { LibraryParts } from "./library.ts";
import { createOperating } from "./operating.ts";
import type { PlayerParts } from "./players.ts";
import type { SentBroadcasts } from "./sent-broadcasts.ts";
import { isConnected } from "./state.ts";
import { createStorageDesk } from "./storage-desk.ts";
import type { SwarmParts } from "./swarms.ts";

/** Time limit for one list named by an API caller, ms. */
const FETCH_TIMEOUT_MS = 20_000;

/** The parts of an engine, all open. */
export interface OpenParts {
  readonly access: AccessParts;
  readonly cache: PieceCache;
  readonly kept: KeptContent;
  readonly swarms: SwarmParts;
  readonly finding: ContentParts;
  readonly cushion: CushionSetting;
  readonly sessions: Sessions;
  readonly library: LibraryParts;
  readonly recordings: Recordings | null;
  readonly playing: Pick<PlayerParts, "players" | "pages" | "cast">;
  readonly sent: SentBroadcasts;
  readonly metrics: Metrics;
  readonly loopDelay: LoopDelay;
  readonly frontStates: FrontStates;
}

/** Makes what HTTP is given. */
export function createHttpParts(ground: Ground, parts: OpenParts): HttpParts {
  const { ports: { clock, log, runtime }, options } = ground;
  const { cache, swarms: { manager }, sessions, metrics, loopDelay } = parts;
  const figures = engineFigures({
    clock,
    runtime,
    torrents: { running: () => manager.list(), totals: parts.swarms.totals.torrents },
    broadcasts: { running: () => parts.swarms.broadcasts.list(), totals: parts.swarms.totals.broadcasts },
    cache: () => cacheFigures(cache),
    sessions: () => sessions.list(),
    isConnected: () => isOnline(parts.swarms),
  });
  return {
    sessions,
    cacheFigures: () => cacheFigures(cache),
    egressFacts: () => egressFacts(ground),
    policy: parts.access.policy,
    isOwnRequest: (headers) => ground.ownRequests.isOwn(headers),
    admission: new RequestAdmission(),
    publicUrl: options.publicUrl ?? null,
    transcodeAudio: options.transcodeAudio ?? "auto",
    lowLatency: options.lowLatency ?? false,
    prefixes: ["engine", ...options.pathAliases ?? []],
    pages: parts.playing.pages,
    sentSessions: new SentSessions(),
    fronts: options.fronts ?? [],
    frontPages: options.frontPages ?? [],
    frontStates: parts.frontStates,
    whole: {
      directory: options.cache === "disk" && options.cacheLimitBytes === 0 ? options.cacheDir ?? null : null,
      acquire: (target) => manager.acquire(target),
      remove: async (infohashHex) => {
        await manager.swarms.closed(infohashHex);
        await cache.remove(infohashHex);
      },
    },
    clock,
    log,
    metrics,
    scrape: () => exposition([...figures, ...metrics.families(), loopDelay.histogram]),
    runtime,
    api: createApiParts(ground, parts),
  };
}

/** What the method API is given beside it. */
function createApiParts(ground: Ground, parts: OpenParts): HttpParts["api"] {
  const { ports, localPorts, options, stateDir, closing, recentLog } = ground;
  const { cache, swarms: { manager, broadcasts }, sessions, sent, cushion } = parts;
  const { token, settings, signIn, devices } = parts.access;
  const { players, cast } = parts.playing;
  const { content, analyzer, media } = parts.finding;
  return {
    token,
    settings,
    signIn,
    devices,
    players,
    cast,
    content,
    analyzer,
    media,
    ...parts.library,
    recordings: parts.recordings,
    broadcasts: new SourceDesk({
      // Datagrams that a source sends here stay in the local network.
      ports: { ...ports, udp: localPorts.udp },
      stateDir,
      trackers: options.trackers ?? [],
      broadcast: (wanted) => sent.start(wanted),
      membersOf: (infohashHex) =>
        broadcasts.list().find(({ metainfo }) => metainfo.infohashHex === infohashHex)?.members() ?? [],
    }),
    storage: createStorageDesk({
      cache,
      kind: options.cache ?? "ram",
      manager,
      known: parts.kept.transportCache,
      clock: ports.clock,
    }),
    operating: createOperating({
      options,
      manager,
      broadcasts,
      sessions,
      cushion,
      cacheFigures: () => cacheFigures(cache),
      recentLog,
    }),
    allowPrivateFetch: options.allowPrivateFetch ?? false,
    fetchBytes: async (url, { maxBytes, allowPrivate }, signal) =>
      (await guardedFetch(ports, url, { maxBytes, timeoutMs: FETCH_TIMEOUT_MS, allowPrivate }, signal)).bytes,
    files: ports.files,
    closing: closing.signal,
    hasScreen: () => ports.programs.hasDesktop(),
    isConnected: () => isOnline(parts.swarms),
  };
}

function cacheFigures({ limitBytes, usedBytes }: PieceCache): { limitBytes: number; usedBytes: number } {
  return { limitBytes, usedBytes };
}

/** Whether anything shows that the internet is reached. */
function isOnline({ manager, broadcasts, discovery }: SwarmParts): boolean {
  return isConnected([...manager.list(), ...broadcasts.list()], discovery);
}
