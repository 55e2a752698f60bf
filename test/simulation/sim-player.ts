/** A player: reads ahead into a buffer of its own, starts after a prebuffer, plays at the bitrate, seeks. */
import type { SchedulerApi } from "../../src/swarm/scheduler/types.ts";

/** What a player sees of the swarm it reads from. */
export interface PlayedSwarm {
  readonly queue: { after(delayMs: number, run: () => void): void };
  readonly nowMs: number;
  readonly totalBytes: number;
  readonly scheduler: Pick<SchedulerApi, "setReader" | "removeReader">;
  /** Called when a piece was verified. */
  readonly onPiece: (() => void)[];
  /** Verified bytes from `position` on. */
  availableFrom(position: number): number;
  /** Starts the scheduler's timer when it doesn't run. */
  tick(): void;
}

export interface PlayerProfile {
  readonly id: number;
  readonly start?: number;
  /** Media bitrate, bytes/s; infinite = copies as fast as it can. */
  readonly bytesPerSecond: number;
  /** Whether the engine knows the bitrate. Default true (when finite). */
  readonly bitrateKnown?: boolean;
  /** Bytes before playing starts. Default 1 MiB. */
  readonly prebufferBytes?: number;
  /** Media it keeps of its own, ms. Default 4000. */
  readonly ownBufferMs?: number;
  /** How often it looks, ms: stalls are told this finely. Default 5. */
  readonly stepMs?: number;
  /** Whether it tells the scheduler where it reads. Default true. */
  readonly tellsPosition?: boolean;
}

/** Size of one read. */
const READ_BYTES = 262_144;

export class SimPlayer {
  /** Time from opening (or the last seek) to the first byte, and to the prebuffer; null before. */
  firstByteMs: number | null = null;
  startedMs: number | null = null;
  stalls = 0;
  stalledMs = 0;
  readonly seekMs: number[] = [];
  position: number;
  #played: number;
  #openedMs: number;
  readonly #swarm: PlayedSwarm;
  readonly #profile: PlayerProfile;
  readonly #stepMs: number;
  #closed = false;
  #stalled = false;
  #seeking = false;

  constructor(swarm: PlayedSwarm, profile: PlayerProfile) {
    this.#swarm = swarm;
    this.#profile = profile;
    this.#stepMs = profile.stepMs ?? 5;
    this.position = this.#played = profile.start ?? 0;
    this.#openedMs = swarm.nowMs;
    swarm.onPiece.push(() => this.#read());
    this.#read();
    this.#demand();
    this.#step();
  }

  /** Played since opening or the last seek's position, from the film's start. */
  get playedBytes(): number {
    return this.#played;
  }

  get done(): boolean {
    return this.#played >= this.#swarm.totalBytes;
  }

  seek(position: number): void {
    this.position = this.#played = position;
    this.#openedMs = this.#swarm.nowMs;
    this.firstByteMs = this.startedMs = null;
    this.#seeking = true;
    this.#stalled = false;
    this.#demand();
    this.#read();
  }

  close(): void {
    this.#closed = true;
    this.#swarm.scheduler.removeReader(this.#profile.id, this.#swarm.nowMs);
  }

  get #roomBytes(): number {
    const rate = this.#profile.bytesPerSecond;
    if (!Number.isFinite(rate)) return Number.POSITIVE_INFINITY;
    const own = (rate * (this.#profile.ownBufferMs ?? 4000)) / 1000;
    return Math.max(own, this.#profile.prebufferBytes ?? 1_048_576) - (this.position - this.#played);
  }

  #demand(): void {
    const swarm = this.#swarm;
    const profile = this.#profile;
    if (profile.tellsPosition === false) return;
    const rate = profile.bytesPerSecond;
    const known = Number.isFinite(rate) && profile.bitrateKnown !== false;
    const waits = this.#roomBytes > 0;
    swarm.scheduler.setReader(profile.id, {
      position: this.position,
      end: swarm.totalBytes,
      bytesPerSecond: known ? rate : null,
      readAheadBytes: null,
      waitingEnd: waits ? Math.min(this.position + READ_BYTES, swarm.totalBytes) : this.position,
    }, swarm.nowMs);
    swarm.tick();
  }

  #read(): void {
    if (this.#closed) return;
    const swarm = this.#swarm;
    let moved = false;
    while (this.position < swarm.totalBytes && this.#roomBytes > 0) {
      const bytes = Math.min(swarm.availableFrom(this.position), READ_BYTES, this.#roomBytes);
      if (bytes < 1) break;
      this.position += bytes;
      moved = true;
    }
    if (!moved) return;
    const sinceMs = swarm.nowMs - this.#openedMs;
    if (this.firstByteMs === null) {
      this.firstByteMs = sinceMs;
      if (this.#seeking) this.seekMs.push(sinceMs);
      this.#seeking = false;
    }
    const target = Math.min(this.#profile.prebufferBytes ?? 1_048_576, swarm.totalBytes - this.#played);
    if (this.startedMs === null && this.position - this.#played >= target) this.startedMs = sinceMs;
    if (!Number.isFinite(this.#profile.bytesPerSecond)) this.#played = this.position;
    this.#demand();
  }

  #step(): void {
    if (this.#closed || this.done) return;
    const swarm = this.#swarm;
    const stepMs = this.#stepMs;
    if (this.startedMs !== null && Number.isFinite(this.#profile.bytesPerSecond)) {
      const room = this.#roomBytes;
      const next = this.#played + (this.#profile.bytesPerSecond * stepMs) / 1000;
      if (next > this.position && this.position < swarm.totalBytes) {
        if (!this.#stalled) this.stalls++;
        this.#stalled = true;
        this.stalledMs += stepMs;
      } else {
        this.#stalled = false;
        this.#played = Math.min(next, swarm.totalBytes);
        if (this.done) return this.close();
      }
      this.#read();
      if (room <= 0 && this.#roomBytes > 0) this.#demand();
    }
    swarm.queue.after(stepMs, () => this.#step());
  }
}
