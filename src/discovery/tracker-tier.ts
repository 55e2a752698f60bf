/** One tier of trackers (BEP 12): asks them in turn until one responds, and keeps asking that one. */
import { deadline } from "../bytes/deadline.ts";
import { faultFields, guarded } from "../bytes/guarded-clock.ts";
import { toHex } from "../bytes/hex.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type { Clock, Logger, SocketAddress, Timer } from "../ports.ts";
import {
  type Announce,
  type AnnounceAnswer,
  type AnnounceEvent,
  retryInMs,
  type TrackerAnnouncer,
} from "./announce.ts";
import { backoffMs, FAILING_MIN_INTERVAL_MS, scheduleAfter } from "./intervals.ts";
import type { AnnounceState, DiscoverySourceStatus } from "./types.ts";

/** Peers requested: enough for a fast choice, few enough for one UDP datagram (1500 bytes hold 240). */
const NUM_WANT = 80;

/** Time for a tracker that has others after it in its tier; the last one has as long as its protocol allows. */
const PATIENCE_MS = 15_000;

/** Shortest time between two announces of a swarm that only finds peers by asking, ms: a viewer's start waits for it. */
const URGENT_INTERVAL_MS = 2_500;

/** Refusals of one tracker that are logged: some count something in theirs, so that no two are the same. */
const MAX_LOGGED = 4;

/** Passkeys, which some trackers repeat. */
const LOOKS_SECRET = /[0-9A-Za-z_-]{16,}/g;

/** Dependencies of a tier, given by its swarm. */
export interface TierContext {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly infohash: Uint8Array;
  readonly peerId: Uint8Array;
  /** Sent as `key` with every announce of the swarm. */
  readonly key: number;
  peerPort(): number;
  state(): AnnounceState;
  /** `from`: literal address of the tracker, null when unknown. */
  onPeers(peers: readonly SocketAddress[], from: string | null): void;
  /** True while an earlier tier gives peers, so that this one may rest (BEP 12: later tiers are backups). */
  isCovered(tier: TrackerTier): boolean;
  /** None of its trackers responded, and its next try is set. */
  onFailed(tier: TrackerTier): void;
}

/** One tracker of a tier. */
interface Tracker {
  readonly name: string;
  readonly announce: TrackerAnnouncer;
  /** The tracker accepted our `started`. */
  acknowledged: boolean;
  /** The tracker may list us, so we owe it `stopped`. */
  mayListUs: boolean;
  completedDue: boolean;
  trackerId: Uint8Array | null;
  lastError: string | null;
  /** Refusals that were logged. */
  readonly logged: Set<string>;
  peers: number;
  seeders: number | null;
  /** Earliest next announce (BEP 31), monotonic ms. */
  notBeforeMs: number;
}

/** A tier. Nothing runs before `start`. */
export class TrackerTier {
  readonly #context: TierContext;
  readonly #trackers: Tracker[];
  readonly #aborter = new AbortController();
  #timer: Timer | null = null;
  #running = false;
  #runAgain = false;
  #retryIfFailed = false;
  #closed = false;
  #failures = 0;
  #answered = false;
  #lastPeers = 0;
  #intervalMs = 0;
  /** When the timer is due, and the earliest time for a request on demand, monotonic ms. */
  #nextMs = 0;
  #earliestMs = 0;
  #onDemand = false;
  /** When it was last asked, monotonic ms. */
  #askedMs = -Infinity;
  /** An announce before the minimum interval failed: the tier is not asked that early again. */
  #refusesHaste = false;

  /** `trackers` in the order in which they are asked; the caller has shuffled them. */
  constructor(context: TierContext, trackers: readonly { name: string; announce: TrackerAnnouncer }[]) {
    this.#context = context;
    this.#trackers = trackers.map((tracker) => ({
      ...tracker,
      acknowledged: false,
      mayListUs: false,
      completedDue: false,
      trackerId: null,
      lastError: null,
      logged: new Set(),
      peers: 0,
      seeders: null,
      notBeforeMs: 0,
    }));
  }

  /** True while its last announce brought peers. */
  get givesPeers(): boolean {
    return this.#answered && this.#failures === 0 && this.#lastPeers > 0;
  }

  /** One of its trackers responded once. */
  get hasAnswered(): boolean {
    return this.#answered;
  }

  /** Number of its trackers. */
  get size(): number {
    return this.#trackers.length;
  }

  start(): void {
    void this.#run();
  }

  /** Asks no more until `start`. */
  rest(): void {
    this.#timer?.cancel();
    this.#runAgain = this.#retryIfFailed = false;
    this.#nextMs = Infinity;
  }

  /**
   * Asks again as soon as the minimum interval allows, or if `isUrgent` after `URGENT_INTERVAL_MS`, until an announce that
   * early fails. BEP 3 lets a peer that needs others ask at other times than the regular ones.
   */
  needPeers(isUrgent = false): void {
    if (this.#closed || this.#running) return;
    this.#onDemand = true;
    const { clock } = this.#context;
    const isTolerated = isUrgent && this.#failures === 0 && !this.#refusesHaste;
    const fromMs = isTolerated ? Math.min(this.#earliestMs, this.#askedMs + URGENT_INTERVAL_MS) : this.#earliestMs;
    const atMs = Math.max(fromMs, clock.monotonic());
    if (atMs < this.#nextMs) this.#schedule(atMs);
  }

  /**
   * Asks at once if none of its trackers responded last time, or none responds now: one of them may have been out of scope
   * when it was asked.
   */
  retry(): void {
    if (this.#running) this.#retryIfFailed = true;
    else if (!this.#closed && this.#failures > 0) void this.#run();
  }

  /** Sends `completed` at once to the trackers that know us: events are exempt from intervals. */
  completed(): void {
    if (this.#closed) return;
    let due = false;
    for (const tracker of this.#trackers) due = (tracker.completedDue = tracker.mayListUs) || due;
    if (!due) return;
    if (this.#running) this.#runAgain = true;
    else void this.#run();
  }

  status(): DiscoverySourceStatus[] {
    const nextMs = this.#running || this.#closed ? null : Math.max(0, this.#nextMs - this.#context.clock.monotonic());
    return this.#trackers.map((tracker, index) => ({
      kind: "tracker",
      name: tracker.name,
      peers: tracker.peers,
      seeders: tracker.seeders,
      lastError: tracker.lastError,
      nextAnnounceMs: index === 0 ? nextMs : null,
    }));
  }

  /** Stops, and sends `stopped` to every tracker that may list us; the caller bounds the wait with `signal`. */
  async close(signal: AbortSignal): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#aborter.abort(new MillraceError("closed", "the announce was given up"));
    await Promise.allSettled(
      this.#trackers.filter((tracker) => tracker.mayListUs).map((tracker) => {
        return tracker.announce(this.#message(tracker, "stopped"), signal, () => {});
      }),
    );
  }

  #message(tracker: Tracker, event: AnnounceEvent): Announce {
    const { infohash, peerId, key } = this.#context;
    const { uploadedBytes, downloadedBytes, leftBytes } = this.#context.state();
    return {
      infohash,
      peerId,
      key,
      port: this.#context.peerPort(),
      uploadedBytes: byteCount(uploadedBytes),
      downloadedBytes: byteCount(downloadedBytes),
      leftBytes: byteCount(leftBytes),
      event,
      numWant: event === "stopped" ? 0 : NUM_WANT,
      trackerId: tracker.trackerId,
    };
  }

  #schedule(atMs: number): void {
    this.#timer?.cancel();
    this.#nextMs = atMs;
    const due = () => {
      if (this.#onDemand || !this.#context.isCovered(this)) return void this.#run();
      this.#schedule(this.#context.clock.monotonic() + this.#intervalMs);
    };
    const failed = (error: unknown) => {
      this.#broke(error);
      this.#schedule(this.#context.clock.monotonic() + this.#intervalMs);
    };
    const { clock } = this.#context;
    this.#timer = clock.setTimeout(guarded(due, failed), Math.max(0, atMs - clock.monotonic()));
  }

  async #run(): Promise<void> {
    if (this.#running || this.#closed) return;
    this.#running = true;
    this.#timer?.cancel();
    try {
      do {
        this.#runAgain = this.#retryIfFailed = false;
        this.#onDemand = false;
        await this.#round();
        this.#runAgain ||= this.#retryIfFailed && this.#failures > 0;
      } while (this.#runAgain && !this.#closed);
    } catch (error) {
      // It costs this round. Without another one the tier would never ask again.
      this.#broke(error);
      const { clock, random } = this.#context;
      if (!this.#closed) this.#schedule(clock.monotonic() + backoffMs(++this.#failures, random));
    } finally {
      this.#running = false;
    }
  }

  /** Reports a fault of the engine; returns the message for its users. */
  #broke(error: unknown): string {
    const { log, infohash } = this.#context;
    log.log("error", "a fault of the engine ended an announce", { infohash: toHex(infohash), ...faultFields(error) });
    return "internal error";
  }

  async #round(): Promise<void> {
    const { clock, random } = this.#context;
    const isEarly = clock.monotonic() < this.#earliestMs;
    this.#askedMs = clock.monotonic();
    for (const tracker of [...this.#trackers]) {
      if (tracker.notBeforeMs > clock.monotonic()) continue;
      const answer = await this.#ask(tracker);
      if (this.#closed) return;
      if (answer === null) continue;
      this.#failures = 0;
      this.#answered = true;
      this.#lastPeers = answer.peers.length;
      this.#promote(tracker);
      const { intervalMs, minIntervalMs } = scheduleAfter(answer);
      this.#intervalMs = intervalMs;
      this.#earliestMs = clock.monotonic() + minIntervalMs;
      this.#schedule(clock.monotonic() + intervalMs);
      return;
    }
    this.#failures++;
    this.#refusesHaste ||= isEarly;
    this.#intervalMs = backoffMs(this.#failures, random);
    const blockedMs = Math.min(...this.#trackers.map((tracker) => tracker.notBeforeMs));
    // Every tracker refused forever (BEP 31): none is left to ask.
    if (blockedMs === Infinity) this.#nextMs = this.#earliestMs = Infinity;
    else {
      this.#earliestMs = Math.max(blockedMs, clock.monotonic() + Math.min(this.#intervalMs, FAILING_MIN_INTERVAL_MS));
      this.#schedule(Math.max(blockedMs, clock.monotonic() + this.#intervalMs));
    }
    this.#context.onFailed(this);
  }

  /** BEP 12: a tracker that responds moves to the front of its tier. */
  #promote(tracker: Tracker): void {
    const index = this.#trackers.indexOf(tracker);
    if (index > 0) this.#trackers.unshift(...this.#trackers.splice(index, 1));
  }

  async #ask(tracker: Tracker): Promise<AnnounceAnswer | null> {
    const { clock } = this.#context;
    const isLast = tracker === this.#trackers.at(-1);
    const limit = isLast ? null : deadline(clock, PATIENCE_MS, this.#aborter.signal);
    const signal = limit?.signal ?? this.#aborter.signal;
    const event = !tracker.acknowledged ? "started" : tracker.completedDue ? "completed" : "";
    tracker.mayListUs = true;
    try {
      const answer = await tracker.announce(this.#message(tracker, event), signal, ({ peers, from = null }) => {
        if (this.#closed) return;
        tracker.peers += peers.length;
        this.#context.onPeers(peers, from);
      });
      tracker.acknowledged = true;
      if (event === "completed") tracker.completedDue = false;
      tracker.lastError = answer.warning;
      tracker.trackerId = answer.trackerId ?? tracker.trackerId;
      tracker.peers = answer.peers.length;
      tracker.seeders = answer.seeders;
      if (!this.#closed) this.#context.onPeers(answer.peers, answer.from ?? null);
      return answer;
    } catch (caught) {
      if (this.#closed) return null;
      const error = signal.aborted ? abortError(signal) : caught;
      tracker.mayListUs = tracker.acknowledged;
      tracker.lastError = error instanceof MillraceError ? error.message : this.#broke(error);
      if (hasCode(error, "tracker")) this.#logRefusal(tracker, error.message);
      const retryMs = retryInMs(error);
      if (retryMs !== null) tracker.notBeforeMs = clock.monotonic() + retryMs;
      return null;
    } finally {
      limit?.cancel();
    }
  }

  /** Once per reason: a tracker repeats it at every announce. */
  #logRefusal({ name, logged }: Tracker, message: string): void {
    const reason = message.replace(LOOKS_SECRET, "…");
    if (logged.has(reason) || logged.size === MAX_LOGGED) return;
    logged.add(reason);
    const { log, infohash } = this.#context;
    log.log("info", "a tracker refuses the announce", { infohash: toHex(infohash), tracker: name, reason });
  }
}

/** A count that both protocols can carry, even if the swarm has no real sum before the metadata (NaN, Infinity). */
function byteCount(value: number): number {
  return Number.isNaN(value) ? 0 : Math.trunc(Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, value)));
}
