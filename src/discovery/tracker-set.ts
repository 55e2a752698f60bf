/**
 * All trackers of one swarm. BEP 12 asks the tiers one after another; here all tiers ask their first tracker in
 * parallel at the start, because a viewer waits: after a dead first tier the first peer would otherwise come 15 s or
 * more late. From then on a later tier rests while an earlier one gives peers, so that the steady-state load is that of
 * BEP 12.
 */
import { deadline, withSignal } from "../bytes/deadline.ts";
import type { Clock } from "../ports.ts";
import type { TrackerAnnouncer } from "./announce.ts";
import { type TierContext, TrackerTier } from "./tracker-tier.ts";
import { allowServer, type DiscoverySourceStatus, type ServerScope } from "./types.ts";

/** Trackers per swarm; further ones are ignored. */
const MAX_TRACKERS = 256;

/** Trackers in use at a time: real torrents name up to 40. The others wait until some of these prove dead. */
const MAX_IN_USE = 64;

/** A tier that gave its place to another one gets one again after this, ms, at the earliest. */
const REST_MS = 5 * 60_000;

/** Longest tracker URL: passkeys are below 100 characters. */
const MAX_URL_CHARS = 2_048;

/** Trackers have this long to receive `stopped`: a swarm closes within 2 s whatever they do. */
export const STOP_DEADLINE_MS = 1_500;

/** Makes the announcer of a tracker URL, which calls `scope` each time; null when its scheme is not supported. */
export type AnnouncerFactory = (url: string, scope: () => ServerScope) => TrackerAnnouncer | null;

/** Dependencies of a set; it passes them to its tiers, with what these ask of the set added. */
export interface TrackerSetContext extends Omit<TierContext, "isCovered" | "onFailed"> {
  readonly clock: Clock;
  readonly createAnnouncer: AnnouncerFactory;
  /** Trackers in use at a time. Default 64. */
  readonly mostInUse?: number;
}

interface Entry {
  readonly tier: TrackerTier;
  /** Named in the user's options, not by the torrent. */
  readonly extra: boolean;
  /** Monotonic ms from which it may be started, while it waits. */
  waitsUntilMs: number;
}

/** The trackers of one swarm, in tiers. */
export class TrackerSet {
  readonly #context: TrackerSetContext;
  readonly #tierContext: TierContext;
  readonly #known = new Map<string, ServerScope>();
  readonly #ignored: DiscoverySourceStatus[] = [];
  /** In use. */
  #entries: Entry[] = [];
  /** The next one comes first. */
  #waiting: Entry[] = [];
  #closed = false;

  constructor(context: TrackerSetContext) {
    this.#context = context;
    this.#tierContext = {
      ...context,
      isCovered: (tier) => this.#isCovered(tier),
      onFailed: (tier) => this.#replace(tier),
    };
  }

  /** Adds tiers and starts them; known trackers are left out. `extra` ones are dropped if the torrent proves private. */
  add(
    tiers: readonly (readonly string[])[],
    { extra = false, scope = "any" }: { extra?: boolean; scope?: ServerScope } = {},
  ): void {
    if (this.#closed) return;
    const widens = scope === "any" && tiers.flat().some((url) => this.#known.get(url.trim()) === "public");
    for (const urls of tiers) {
      const trackers = shuffled(urls, this.#context.random).flatMap((url) => this.#admit(url, scope));
      const room = this.#room;
      const parts = [trackers.slice(0, room), ...trackers.slice(room).map((tracker) => [tracker])];
      for (const part of parts) {
        if (part.length > 0) {
          this.#waiting.push({ tier: new TrackerTier(this.#tierContext, part), extra, waitsUntilMs: 0 });
        }
      }
      this.#startWaiting();
    }
    if (!widens) return;
    for (const entry of this.#waiting) entry.waitsUntilMs = 0;
    for (const { tier } of this.#entries) tier.retry();
  }

  /** All trackers that were added, as they were, each with its scope. */
  known(): Iterable<readonly [url: string, scope: ServerScope]> {
    return this.#known;
  }

  needPeers(isUrgent = false): void {
    for (const { tier } of this.#entries) tier.needPeers(isUrgent);
  }

  completed(): void {
    for (const { tier } of this.#entries) tier.completed();
  }

  /** BEP 27: only the torrent's own trackers may know of a private torrent. */
  dropExtra(): void {
    const dropped = this.#entries.filter((entry) => entry.extra);
    this.#entries = this.#entries.filter((entry) => !entry.extra);
    this.#waiting = this.#waiting.filter((entry) => !entry.extra);
    void this.#stop(dropped);
    this.#startWaiting();
  }

  status(): DiscoverySourceStatus[] {
    return [...[...this.#entries, ...this.#waiting].flatMap(({ tier }) => tier.status()), ...this.#ignored];
  }

  /** Sends `stopped`; resolves within 1.5 s. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#stop(this.#entries);
  }

  async #stop(entries: readonly Entry[]): Promise<void> {
    const limit = deadline(this.#context.clock, STOP_DEADLINE_MS);
    const all = Promise.all(entries.map(({ tier }) => tier.close(limit.signal)));
    await withSignal(all, limit.signal).catch(() => {});
    limit.cancel();
  }

  /** How many more trackers may be in use. */
  get #room(): number {
    return this.#entries.reduce((room, { tier }) => room - tier.size, this.#context.mostInUse ?? MAX_IN_USE);
  }

  /** Starts what may be started and fits. */
  #startWaiting(): void {
    const nowMs = this.#context.clock.monotonic();
    for (const entry of [...this.#waiting]) {
      if (entry.waitsUntilMs > nowMs || entry.tier.size > this.#room) continue;
      this.#waiting.splice(this.#waiting.indexOf(entry), 1);
      this.#entries.push(entry);
      entry.tier.start();
    }
  }

  /** A tier failed: if it never answered, and no other gives peers, its place goes to one that waits. */
  #replace(tier: TrackerTier): void {
    const entry = this.#entries.find((one) => one.tier === tier);
    const nowMs = this.#context.clock.monotonic();
    if (entry === undefined || tier.hasAnswered || this.#entries.some((one) => one.tier.givesPeers)) return;
    const room = this.#room + tier.size;
    if (!this.#waiting.some((one) => one.waitsUntilMs <= nowMs && one.tier.size <= room)) return;
    tier.rest();
    this.#entries.splice(this.#entries.indexOf(entry), 1);
    this.#startWaiting();
    entry.waitsUntilMs = nowMs + REST_MS;
    this.#waiting.push(entry);
  }

  #admit(text: string, scope: ServerScope): { name: string; announce: TrackerAnnouncer }[] {
    const url = text.trim();
    const isKnown = this.#known.has(url);
    if (!isKnown && (this.#known.size >= MAX_TRACKERS || url.length > MAX_URL_CHARS)) return [];
    allowServer(this.#known, url, scope);
    if (isKnown) return [];
    const name = publicName(url);
    const announce = this.#context.createAnnouncer(url, () => this.#known.get(url)!);
    if (announce !== null) return [{ name, announce }];
    const lastError = /^wss?:/i.test(url)
      ? "this tracker is for web browsers (WebSocket); with --no-webrtc, --proxy and --interface it is not asked"
      : "not a supported tracker address (http, https, udp)";
    this.#ignored.push({ kind: "tracker", name, peers: 0, seeders: null, lastError, nextAnnounceMs: null });
    return [];
  }

  #isCovered(tier: TrackerTier): boolean {
    for (const entry of this.#entries) {
      if (entry.tier === tier) return false;
      if (entry.tier.givesPeers) return true;
    }
    return false;
  }
}

/** Scheme and host only: paths and queries carry passkeys. */
function publicName(url: string): string {
  if (!URL.canParse(url)) return "(not a URL)";
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [copy[i], copy[j]] = [copy[j]!, copy[i]!];
  }
  return copy;
}
