/** A live broadcast on virtual time: viewers come and go, play, and are measured. */
import { FLAG_DISCONTINUITY, FLAG_RANDOM_ACCESS } from "../../src/live/header.ts";
import { RESERVED_PIECES } from "../../src/live/broadcast/broadcast-state.ts";
import type { LiveFeed } from "../../src/live/node/stream/feed.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { continuityOf, percentile, type Played } from "./live-played.ts";
import { seededRandom } from "./event-queue.ts";
import { EventWheel } from "./event-wheel.ts";
import { Dealing } from "./live-dealing.ts";
import { Meeting, NEIGHBOURS, SOURCE_LINKS } from "./live-meeting.ts";
import { SOURCE_QUIET_MS, SOURCE_RETRY_MS } from "../../src/live/swarm/redial.ts";
import { connect, disconnect, EPOCH_MS, GENUINE, openSpares, SimHost, simulatedHeader } from "./live-network.ts";
import type { LiveResult, LiveScenario } from "./live-scenario.ts";
import { beginLog, type MessageLog } from "./message-log.ts";
import { LiveStream } from "./live-stream.ts";
import { dealRegion } from "./regions.ts";
import { SentMessages } from "./sent-messages.ts";

export type { LiveResult, LiveScenario } from "./live-scenario.ts";

const TICK_MS = 100;
/** A viewer that has not begun to play after this long never will, ms. */
const NEVER_MS = 10_000;
/** A neighbour that takes nothing of what is pushed to it is dropped after this, and any that says nothing after that, ms. */
const STALLED_MS = 5000;
const SILENT_MS = 35_000;
/** What is lost after a silent death is counted over this time, and from its end on, ms. */
const AFTERMATH_MS = 60_000;

interface Viewer {
  readonly host: SimHost;
  readonly feed: LiveFeed;
  startedMs: number | null;
  recoveredMs: number | null;
  /** Virtual ms at which something was played last, and the longest time without since the silent death of others. */
  playedMs: number;
  gapMs: number;
  lastSeq: number;
  /** Capture time of the end of what was given last, Unix ms. */
  givenMs: number;
  /** Numbers among those skipped that the source never used. */
  unusedSkipped: number;
  /** What it had played when others died silently, and a minute after; null before that, and without. */
  atDeath: Played | null;
  minuteLater: Played | null;
}

/** Runs a scenario; the same seed gives the same figures everywhere. */
export function simulateLive(scenario: LiveScenario): LiveResult {
  return new LiveSimulation(scenario).run();
}

/** One run of a scenario. */
export class LiveSimulation {
  readonly #scenario: LiveScenario;
  readonly #queue = new EventWheel();
  readonly #random: () => number;
  readonly #log: MessageLog | null;
  readonly #source: SimHost;
  readonly #meeting: Meeting;
  readonly #dealing: Dealing;
  #viewers: Viewer[] = [];
  readonly #left: Viewer[] = [];
  readonly #stream: LiveStream;
  #badBytes = 0;
  #viewerTicks = 0;
  #away = false;
  #resume = false;
  /** Virtual ms until which the source dials nobody: those who have lost it come first. */
  #quietUntilMs = 0;
  /** Numbers in [from, to) that the source has left out at its return. */
  #unused: readonly [number, number] = [0, 0];
  /** Neighbours that the source had when it went. */
  #widowed: SimHost[] = [];
  readonly #lags: number[] = [];
  readonly #givenLags: number[] = [];

  constructor(scenario: LiveScenario) {
    this.#scenario = scenario;
    this.#random = seededRandom(scenario.seed ?? 1);
    this.#log = scenario.keepsLog === true ? beginLog(this.#queue) : null;
    const { bytesPerS } = this.#stream = new LiveStream(scenario);
    this.#source = new SimHost(
      this.#queue,
      {
        role: "source",
        ...sourceLine(scenario, bytesPerS),
        loss: scenario.loss ?? 0,
        isClosed: scenario.closedSource ?? false,
        routerMs: scenario.routerMs ?? 0,
        ...this.#placed(),
      },
      this.#stream.announced,
      this.#random,
    );
    this.#dealing = new Dealing(scenario, bytesPerS, this.#random);
    this.#meeting = new Meeting({
      queue: this.#queue,
      random: this.#random,
      source: this.#source,
      viewers: () => this.#viewers,
      isAway: () => this.#away,
      latencyMs: scenario.latencyMs ?? [10, 50],
      sourceLinks: scenario.sourceLinks ?? SOURCE_LINKS,
      hasClosed: (scenario.closedShare ?? 0) > 0 || scenario.closedSource === true,
    });
  }

  run(): LiveResult {
    const { viewers, arriveS, durationS, churnPerMinute, outageS, silentDeath } = this.#scenario;
    const fromMs = 1000 * (this.#scenario.arriveFromS ?? 2);
    const first = Math.min(this.#scenario.first ?? 10, viewers);
    this.#publish(0, 0);
    this.#tickHost(this.#source, null);
    for (let i = 0; i < viewers; i++) {
      const atMs = i < first ? 200 + 100 * i : fromMs + arriveS * 1000 * (i - first) / (viewers - first);
      this.#queue.at(atMs, () => this.#arrive(i));
    }
    if (churnPerMinute !== undefined) this.#churn(60_000 / (churnPerMinute * viewers), fromMs + arriveS * 1000);
    if (outageS !== undefined) {
      this.#queue.at(outageS[0] * 1000, () => this.#sourceGone());
      this.#queue.at(outageS[1] * 1000, () => this.#sourceBack());
    }
    if (silentDeath !== undefined) {
      this.#queue.at(silentDeath.atS * 1000, () => {
        for (const viewer of this.#doomed(silentDeath.share)) this.#vanish(viewer);
        for (const viewer of this.#viewers) viewer.atDeath = this.#played(viewer);
      });
      this.#queue.at(silentDeath.atS * 1000 + AFTERMATH_MS, () => {
        for (const viewer of this.#viewers) if (viewer.atDeath !== null) viewer.minuteLater = this.#played(viewer);
      });
    }
    for (let ms = fromMs + arriveS * 1000 + 8000; ms <= durationS * 1000; ms += 1000) {
      this.#queue.at(ms, () => this.#sampleLag());
    }
    this.#queue.run(durationS * 1000);
    return this.#result();
  }

  #publish(seq: number, mediaMs: number): void {
    const piece = this.#stream.piece(mediaMs);
    const startMs = this.#queue.nowMs;
    this.#queue.after(piece.lastsMs, () => {
      if (!this.#away) {
        const isAccess = seq === 0 || this.#resume || piece.isAccess;
        const flags = (isAccess ? FLAG_RANDOM_ACCESS : 0) | (this.#resume ? FLAG_DISCONTINUITY : 0);
        if (this.#resume) seq = this.#restarted(seq);
        this.#resume = false;
        const timestampMs = EPOCH_MS + Math.floor(startMs);
        const header = simulatedHeader({ seq, timestampMs, flags, lengthBytes: piece.lengthBytes });
        this.#source.node.publish({ header, data: GENUINE.subarray(0, piece.lengthBytes) });
      }
      this.#publish(this.#away ? seq : seq + 1, mediaMs + piece.lastsMs);
    });
  }

  /** A broadcaster that was killed has forgotten its pieces, and continues after the numbers that it had reserved. */
  #restarted(seq: number): number {
    const next = Math.ceil(seq / RESERVED_PIECES) * RESERVED_PIECES;
    this.#source.node.window.reset(next);
    this.#unused = [seq, next];
    return next;
  }

  /** True for those of the viewers who lie: one of as many as `share` says, from the thirteenth on. */
  #isLiar(number: number): boolean {
    const { liars } = this.#scenario;
    return liars !== undefined && number % Math.round(1 / liars.share) === 12 % Math.round(1 / liars.share) &&
      number >= 12;
  }

  #arrive(number: number): void {
    const { rate, poisons } = this.#dealing.uplink(number);
    const { loss = 0, clocksWrongMs = 0, routerMs = 0 } = this.#scenario;
    const clockAheadMs = clocksWrongMs === 0 ? 0 : clocksWrongMs * (2 * this.#random() - 1);
    const isClosed = this.#dealing.isClosed();
    const isPunchable = isClosed && this.#dealing.isPunchable();
    const honest = {
      role: "viewer",
      uplinkBytesPerS: rate,
      poisons,
      loss,
      clockAheadMs,
      routerMs,
      ...this.#placed(),
      isClosed,
      isPunchable,
    } as const;
    const options = this.#isLiar(number) ? { ...honest, liar: this.#scenario.liars!.kind } : honest;
    const host = new SimHost(this.#queue, options, this.#stream.announced, this.#random);
    const viewer: Viewer = {
      host,
      feed: host.node.openFeed(),
      startedMs: null,
      recoveredMs: null,
      playedMs: Infinity,
      gapMs: 0,
      lastSeq: -1,
      givenMs: -Infinity,
      unusedSkipped: 0,
      atDeath: null,
      minuteLater: null,
    };
    this.#viewers.push(viewer);
    host.onPiece = () => this.#play(viewer);
    this.#meeting.meet(host);
    this.#queue.after(TICK_MS * this.#random(), () => this.#tickHost(host, viewer));
  }

  /** Where a new member lives, and what its line loses. */
  #placed(): Pick<SimHost["options"], "region" | "packetLoss"> {
    const { hasRegions, packetLoss } = this.#scenario;
    const lossy = packetLoss === undefined ? {} : { packetLoss };
    return hasRegions === true ? { ...lossy, region: dealRegion(this.#random) } : lossy;
  }

  #tickHost(host: SimHost, viewer: Viewer | null): void {
    if (!host.alive) return;
    if (host !== this.#source || !this.#away) {
      host.node.tick();
      openSpares(this.#queue, host);
      if (this.#random() < TICK_MS / POLICY.exploreMs && host.links.size >= NEIGHBOURS) host.makeRoom();
      const isQuiet = host === this.#source && this.#queue.nowMs < this.#quietUntilMs;
      if (!isQuiet && host.links.size < NEIGHBOURS && this.#random() < 0.1) this.#meeting.meet(host);
    }
    if (viewer !== null) {
      this.#viewerTicks++;
      this.#play(viewer);
    }
    this.#queue.after(TICK_MS, () => this.#tickHost(host, viewer));
  }

  #play(viewer: Viewer): void {
    const nowMs = this.#queue.nowMs;
    for (const { blocks, header } of viewer.feed.take(nowMs)) {
      const { seq } = header;
      const [from, to] = this.#unused;
      if (viewer.lastSeq !== -1 && viewer.lastSeq < from && seq >= to) viewer.unusedSkipped += to - from;
      viewer.lastSeq = seq;
      if (nowMs > (this.#scenario.silentDeath?.atS ?? Infinity) * 1000) {
        viewer.gapMs = Math.max(viewer.gapMs, nowMs - viewer.playedMs);
      }
      viewer.playedMs = nowMs;
      viewer.givenMs = header.timestampMs + header.lengthBytes / this.#stream.bytesPerS * 1000;
      for (const block of blocks) if (block.buffer !== GENUINE.buffer) this.#badBytes += block.length;
      const backMs = (this.#scenario.outageS?.[1] ?? Infinity) * 1000;
      if (header.timestampMs - EPOCH_MS >= backMs - 500 && nowMs >= backMs) viewer.recoveredMs ??= nowMs - backMs;
    }
    if (viewer.feed.started) viewer.startedMs ??= nowMs;
  }

  #leave(viewer: Viewer): void {
    viewer.host.alive = false;
    for (const other of [...viewer.host.links.keys()]) disconnect(viewer.host, other);
    this.#forget(viewer);
  }

  /** A share of the viewers with each up-link: those that stay are the same mix, and can carry the stream as before. */
  #doomed(share: number): Viewer[] {
    const order = new Map(this.#viewers.map((viewer) => [viewer, this.#random()]));
    const up = ({ host }: Viewer) => host.options.uplinkBytesPerS;
    const sorted = [...this.#viewers].sort((a, b) => up(a) - up(b) || order.get(a)! - order.get(b)!);
    return sorted.filter((_, i) => Math.floor((i + 1) * share) > Math.floor(i * share));
  }

  /** A viewer's cable is pulled: the others find that out by themselves. */
  #vanish(viewer: Viewer): void {
    viewer.host.alive = false;
    for (const other of [...viewer.host.links.keys()]) {
      const peer = other.links.get(viewer.host)?.local;
      const pushes = peer != null && other.node.seats.pushesAny(peer);
      this.#queue.after(pushes ? STALLED_MS : SILENT_MS, () => disconnect(viewer.host, other));
    }
    this.#forget(viewer);
  }

  #forget(viewer: Viewer): void {
    this.#viewers = this.#viewers.filter((one) => one !== viewer);
    this.#left.push(viewer);
  }

  #churn(everyMs: number, fromMs: number): void {
    const next = (): void => {
      this.#queue.after(-Math.log(1 - this.#random()) * everyMs, () => {
        this.#leave(this.#viewers[Math.floor(this.#random() * this.#viewers.length)]!);
        // The members that replace them are honest.
        this.#arrive(0);
        next();
      });
    };
    this.#queue.at(fromMs, next);
  }

  #sourceGone(): void {
    this.#away = true;
    this.#widowed = [...this.#source.links.keys()];
    for (const other of this.#widowed) disconnect(this.#source, other);
  }

  #sourceBack(): void {
    this.#away = false;
    this.#resume = true;
    this.#quietUntilMs = this.#queue.nowMs + SOURCE_QUIET_MS;
    for (const host of this.#widowed) {
      // As often as `RedialPolicy` has them dial; the last time before may have been at any moment.
      const everyMs = SOURCE_RETRY_MS * (0.8 + 0.4 * this.#random());
      this.#queue.after(everyMs * this.#random(), () => {
        if (this.#source.links.size < (this.#scenario.sourceLinks ?? SOURCE_LINKS)) {
          connect(this.#queue, host, this.#source, this.#meeting.latencyMs(host, this.#source));
        }
      });
    }
    this.#queue.at(this.#quietUntilMs, () => this.#meeting.meet(this.#source));
  }

  #sampleLag(): void {
    const nowMs = this.#queue.nowMs;
    if (this.#away) return;
    for (const { feed, host, givenMs } of this.#viewers) {
      const lag = feed.lagMs(EPOCH_MS + nowMs, nowMs);
      if (lag === null || !isHonest(host)) continue;
      this.#lags.push(lag);
      this.#givenLags.push(EPOCH_MS + nowMs - givenMs);
    }
  }

  /** The feed counts a standstill when it is over: one that goes on is added. */
  #played({ feed, unusedSkipped, host, givenMs }: Viewer): Played {
    const isPlaying = host.alive && feed.started && !this.#away;
    const overdueMs = isPlaying ? Math.max(0, -feed.lagMs(givenMs, this.#queue.nowMs)!) : 0;
    const stalled = (feed.stalledMs + overdueMs) / this.#stream.pieceMs;
    return { delivered: feed.deliveredPieces, lost: feed.skippedPieces - unusedSkipped + stalled };
  }

  /** The longest standstill since the silent death of others, be it one that goes on, ms. */
  #longestGapMs({ gapMs, playedMs }: Viewer): number {
    return Math.max(gapMs, this.#queue.nowMs - playedMs);
  }

  #result(): LiveResult {
    const all = [...this.#viewers, ...this.#left].filter(({ host }) => isHonest(host));
    const sum = (of: (viewer: Viewer) => number) => all.reduce((total, viewer) => total + of(viewer), 0);
    const delivered = sum((viewer) => this.#played(viewer).delivered);
    const lost = sum((viewer) => this.#played(viewer).lost);
    const fromSource = sum(({ host }) => host.node.counters.fromSourceBytes);
    const fromViewers = sum(({ host }) => host.node.counters.fromViewersBytes);
    const received = fromSource + fromViewers;
    const sent = new SentMessages();
    for (const { host } of [...this.#viewers, ...this.#left]) sent.addAll(host.sent);
    const viewerS = this.#viewerTicks * TICK_MS / 1000;
    const joins = all.filter(({ startedMs }) => startedMs !== null).map(({ startedMs, host }) =>
      startedMs! - host.bornMs
    );
    const recoveries = this.#viewers.flatMap(({ recoveredMs }) => (recoveredMs === null ? [] : [recoveredMs]));
    return {
      name: this.#scenario.name,
      viewers: this.#scenario.viewers,
      joined: this.#viewers.filter(({ startedMs }) => startedMs !== null).length,
      never: this.#viewers.filter(({ startedMs, host }) => {
        return startedMs === null && isHonest(host) && this.#queue.nowMs - host.bornMs > NEVER_MS;
      }).length,
      lagP50S: percentile(this.#lags, 0.5) / 1000,
      lagP95S: percentile(this.#lags, 0.95) / 1000,
      givenLagP50S: percentile(this.#givenLags, 0.5) / 1000,
      givenLagP95S: percentile(this.#givenLags, 0.95) / 1000,
      continuity: delivered / (delivered + lost),
      viewerShare: fromViewers / received,
      duplicateShare: sum(({ host }) => host.node.counters.duplicateBytes) / received,
      joinP50S: percentile(joins, 0.5) / 1000,
      joinP95S: percentile(joins, 0.95) / 1000,
      messagesPerS: sent.count / viewerS,
      controlBytesPerS: sent.bytes / viewerS,
      controlShares: sent.shares,
      badBytesDelivered: this.#badBytes,
      recoveryP95S: recoveries.length === 0 ? null : percentile(recoveries, 0.95) / 1000,
      gapP95S: this.#scenario.silentDeath === undefined
        ? null
        : percentile(this.#viewers.map((viewer) => this.#longestGapMs(viewer)), 0.95) / 1000,
      aftermathContinuity: continuityOf(this.#viewers.map((viewer) => [viewer.atDeath, viewer.minuteLater])),
      laterContinuity: continuityOf(this.#viewers.map((viewer) => [viewer.minuteLater, this.#played(viewer)])),
      viewerSeconds: viewerS,
      logHex: this.#log?.hex ?? null,
      shed: sum(({ host }) => host.node.uploader.shedCount),
    };
  }
}

function sourceLine({ sourceLine }: LiveScenario, bytesPerS: number) {
  if (sourceLine === undefined) return { uplinkBytesPerS: 2 * bytesPerS, limitBytesPerS: 2 * bytesPerS };
  const { bytesPerS: uplinkBytesPerS, limitBytesPerS } = sourceLine;
  return limitBytesPerS === undefined ? { uplinkBytesPerS } : { uplinkBytesPerS, limitBytesPerS };
}

function isHonest({ options }: SimHost): boolean {
  return options.poisons !== true && options.liar === undefined;
}
