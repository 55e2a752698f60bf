/**
 * Whether anybody shares a stream at the moment, found out with next to no traffic: no piece of a torrent is requested.
 */
import { sleep } from "../bytes/deadline.ts";
import type { Analyzer } from "../content/analysis/analyzer.ts";
import type { ResolveContext, Resolver } from "../content/resolve.ts";
import { selectStream } from "../content/selector.ts";
import { hasCode } from "../errors.ts";
import type { LiveSwarmManager } from "../live/swarm/live-swarms.ts";
import type { Clock } from "../ports.ts";
import type { Lease } from "../swarm/leases.ts";
import type { Swarm, SwarmManager } from "../swarm/types.ts";
import { isLive, type LiveMetainfo } from "../metainfo/live.ts";
import type { Magnet } from "../metainfo/types.ts";
import { type AccountConnections, RANKS } from "./channel/account-connections.ts";
import type { ChannelAccount } from "./channel/channel-selector.ts";

/** Time between two checks of a swarm, ms. */
const LOOK_EVERY_MS = 200;
/** Time after the first peer, so that the number of peers means something, ms. */
const SETTLE_MS = 2_000;
/** How long an address waits for a connection of its account, ms: most of the time that a check has. */
const CONNECTION_WAIT_MS = 12_000;
/** Schemes that the engine can open to check an address. */
const INSPECTABLE = /^https?:/i;

/** The finding. */
export interface ProbeResult {
  readonly state: "alive" | "silent" | "unknown";
  /** Connected at the end; null for what comes by HTTP. */
  readonly peers: number | null;
  /** The reason, in words; empty when there is none. */
  readonly message: string;
}

/** What is probed. */
export interface ProbeTarget {
  /** `bt`: torrents and broadcasts; `dash` and others come by HTTP. */
  readonly transportType: string;
  /** Name and value of a parameter of playback. */
  readonly selector: readonly [name: "content_id" | "infohash" | "url" | "magnet", value: string];
  /** Address of items that come by HTTP; null: unknown. */
  readonly url: string | null;
  /** Its address may lead into the private network. */
  readonly mayNamePrivate: boolean;
  /** The account whose connection an address takes; null: none that is known. */
  readonly account: ChannelAccount | null;
}

/** What probing needs. */
export interface ProbeParts {
  readonly clock: Clock;
  readonly resolver: Resolver;
  readonly analyzer: Pick<Analyzer, "inspect">;
  readonly swarms: Pick<SwarmManager, "acquire">;
  readonly live: Pick<LiveSwarmManager, "acquire" | "running">;
  readonly accounts: Pick<AccountConnections, "take">;
}

/**
 * Returns a function that probes a target until `signal` fires; then the result is "silent". For a torrent it joins the
 * swarm and counts peers. For a broadcast it waits for its pieces and leaves at once. For an address it reads the
 * beginning. Rejects as `Resolver.resolve` and `Analyzer.inspect`.
 */
export function createProbe(parts: ProbeParts): (target: ProbeTarget, signal: AbortSignal) => Promise<ProbeResult> {
  return async ({ transportType, selector: [name, value], url, mayNamePrivate: callerIsLocal, account }, signal) => {
    const context = { callerIsLocal, signal };
    if (transportType !== "bt") return await probeAddress(parts, url ?? "", transportType, account, context);
    const { metainfo, magnet, servers = "any" } = await parts.resolver.resolve(
      selectStream({ [name]: value }),
      context,
    );
    const running = magnet === undefined ? null : parts.live.running(magnet.infohashHex);
    const live = metainfo !== undefined && isLive(metainfo) ? metainfo : running;
    if (live !== null) return await probeBroadcast(parts, { metainfo: live, ...magnet && { magnet }, servers }, signal);
    const target = { ...metainfo && !isLive(metainfo) && { metainfo }, ...magnet && { magnet }, servers };
    const lease = parts.swarms.acquire(target);
    try {
      const found = await probeTorrent(parts.clock, lease, magnet, signal);
      if (!("substreams" in found)) return found;
      return await probeBroadcast(parts, { metainfo: found, ...magnet && { magnet }, servers }, signal);
    } finally {
      lease.release();
    }
  };
}

async function probeAddress(
  { analyzer, accounts }: ProbeParts,
  url: string,
  transportType: string,
  account: ChannelAccount | null,
  context: ResolveContext,
): Promise<ProbeResult> {
  if (!INSPECTABLE.test(url)) return { state: "unknown", peers: null, message: "only a player can open this address" };
  const { signal } = context;
  const needed = new AbortController();
  const unknown = ({ message }: Error): ProbeResult => ({ state: "unknown", peers: null, message });
  let giveBack: () => void;
  try {
    const user = { rank: () => RANKS.idle, giveUp: (reason: Error) => needed.abort(reason) };
    giveBack = await accounts.take(account, user, CONNECTION_WAIT_MS, signal);
  } catch (error) {
    if (hasCode(error, "too_busy")) return unknown(error);
    throw error;
  }
  let inspection;
  try {
    inspection = await analyzer.inspect(url, { ...context, signal: AbortSignal.any([signal, needed.signal]) });
  } catch (error) {
    if (needed.signal.aborted && !signal.aborted) return unknown(needed.signal.reason as Error);
    throw error;
  } finally {
    giveBack();
  }
  // The response was a success; only players can judge a DASH manifest.
  if (inspection !== null || transportType === "dash") return { state: "alive", peers: null, message: "" };
  return { state: "silent", peers: null, message: "the address leads to something other than a stream" };
}

/** The broadcast, when the metadata shows that it is one. */
async function probeTorrent(
  clock: Clock,
  lease: Lease<Swarm>,
  magnet: Magnet | undefined,
  signal: AbortSignal,
): Promise<ProbeResult | LiveMetainfo> {
  let live: LiveMetainfo | null = null;
  lease.swarm.metadata(signal).then((metainfo) => {
    if (isLive(metainfo)) live = metainfo;
  }, () => {});
  // Seeders hang up on each other, so a torrent that is completely here has few peers.
  const isWhole = () => {
    const { metainfo } = lease.swarm;
    return metainfo !== null && lease.swarm.status().havePieces === metainfo.pieceCount;
  };
  try {
    await until(clock, () => lease.swarm.status().peers > 0 || live !== null || isWhole(), signal);
    await sleep(clock, SETTLE_MS, signal);
  } catch {
    // The deadline: the result is what is known now. The caller distinguishes it from a cancelled sweep.
  }
  if (live !== null) return live;
  const { swarm } = lease;
  const { peers } = swarm.status();
  if (isWhole()) return { state: "alive", peers, message: "all of it is here" };
  if (peers > 0) return { state: "alive", peers, message: "" };
  const { webSeeds: ofFiles = [], httpSeeds = [] } = swarm.metainfo ?? {};
  const webSeeds = ofFiles.length + httpSeeds.length + (magnet?.webSeeds.length ?? 0);
  if (webSeeds > 0) return { state: "unknown", peers, message: "no peer; its web seeds were not asked" };
  return { state: "silent", peers, message: "no peer was found" };
}

async function probeBroadcast(
  { clock, live }: ProbeParts,
  target: Parameters<LiveSwarmManager["acquire"]>[0],
  signal: AbortSignal,
): Promise<ProbeResult> {
  const lease = live.acquire(target);
  try {
    const { supply } = lease.swarm;
    await until(clock, () => supply.joined && supply.hasPieces, signal).catch(() => {});
    const { peers } = lease.swarm.status();
    const isHere = supply.joined && supply.hasPieces;
    if (isHere && (peers > 0 || lease.swarm.role === "source")) return { state: "alive", peers, message: "" };
    return { state: "silent", peers, message: peers > 0 ? "its members have nothing to send" : "no member was found" };
  } finally {
    // A broadcast that lingered would be downloaded all the while.
    lease.release({ atOnce: true });
  }
}

async function until(clock: Clock, isSo: () => boolean, signal: AbortSignal): Promise<void> {
  while (!isSo()) await sleep(clock, LOOK_EVERY_MS, signal);
}
