/** A swarm that brings bytes at a given rate, and players that count how often they stop: on virtual time. */
import type { ReadOptions } from "../../src/bytes/source.ts";
import { isTurnDue, socketTurn } from "../../src/bytes/turn.ts";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { PlaybackSession } from "../../src/playback/session.ts";
import { segmentBody, tsBody } from "../../src/playback/output.ts";
import type { ReaderOptions, SwarmReader, SwarmStatus } from "../../src/swarm/types.ts";
import { type FakeClock, settle } from "../support/fake-clock.ts";
import { MemorySource } from "../support/memory-source.ts";
import { FakeSwarm } from "./support.ts";

const PIECE_BYTES = 16_384;
const STEP_MS = 500;
/** Turns of the event loop without a read by which everything that is here has reached the player. */
const QUIET_TURNS = 4;
/** What the engine reads ahead unless told otherwise. */
const READ_AHEAD_BYTES = 16 * 2 ** 20;

/** What a reader wants: the byte that a read waits for, or with a length what is read ahead. */
interface Demand {
  position: number;
  aheadBytes: number;
  readonly yieldMs: number;
}

/** One file, of which `bytesPerSecond` arrive: what somebody waits for first, then what is read ahead. */
export class SlowSwarm extends FakeSwarm {
  bytesPerSecond: number;
  /** The most that a reader may have read ahead: the cache's room. */
  roomBytes = Infinity;
  readonly #bytes: Uint8Array;
  readonly #clock: FakeClock;
  readonly #here = new Set<number>();
  readonly #awaited = new Set<Demand>();
  readonly #ahead = new Set<Demand>();
  readonly #arrivals = new Set<() => void>();
  #budget = 0;
  #arrived: number[] = [];

  constructor(name: string, bytes: Uint8Array, bytesPerSecond: number, clock: FakeClock) {
    super([{ name, bytes }]);
    this.bytesPerSecond = bytesPerSecond;
    this.#bytes = bytes;
    this.#clock = clock;
    this.#tick();
  }

  #tick(): void {
    this.#clock.setTimeout(() => {
      const before = this.#budget += this.bytesPerSecond * STEP_MS / 1000;
      while (this.#budget >= PIECE_BYTES) {
        const piece = this.#next();
        if (piece === null) this.#budget = 0;
        else {
          this.#budget -= PIECE_BYTES;
          this.#here.add(piece);
        }
      }
      this.#arrived = [...this.#arrived, before - this.#budget].slice(-2000 / STEP_MS);
      for (const wake of [...this.#arrivals]) wake();
      this.#tick();
    }, STEP_MS);
  }

  #next(): number | null {
    for (const demands of [this.#awaited, this.#ahead]) {
      for (const demand of [...demands].sort((a, b) => a.yieldMs - b.yieldMs)) {
        const { position, aheadBytes } = demand;
        const end = Math.min(position + aheadBytes, this.#bytes.length);
        for (let piece = Math.floor(position / PIECE_BYTES); piece * PIECE_BYTES < end; piece++) {
          if (this.#here.has(piece)) continue;
          // In turn.
          demands.delete(demand);
          demands.add(demand);
          return piece;
        }
      }
    }
    return null;
  }

  override openReader(fileIndex: number, options: ReaderOptions = {}): SwarmReader {
    const source = new MemorySource(this.#bytes);
    const closing = new AbortController();
    const { yieldMs = 0 } = options;
    const ahead: Demand = { position: 0, aheadBytes: options.readAheadBytes ?? READ_AHEAD_BYTES, yieldMs };
    const waitingSinceMs = new Map<Demand, number>();
    const availableFrom = (offset: number, max: number) => {
      let at = offset;
      while (at < offset + max && this.#here.has(Math.floor(at / PIECE_BYTES))) at += PIECE_BYTES - at % PIECE_BYTES;
      return Math.min(at - offset, max, this.#bytes.length - offset);
    };
    const reader: SwarmReader = {
      fileIndex,
      sizeBytes: source.sizeBytes,
      setBitrate() {},
      setReadAhead: (bytes) => ahead.aheadBytes = Math.min(bytes, this.roomBytes),
      availableFrom,
      pieceEnd: (offset) => Math.min(this.#bytes.length, offset - offset % PIECE_BYTES + PIECE_BYTES),
      isWaiting: () => waitingSinceMs.size > 0,
      stallReason: () => {
        const sinceMs = waitingSinceMs.values().next().value;
        return sinceMs !== undefined && this.#clock.monotonic() - sinceMs >= 1000 ? "slow_peers" : null;
      },
      read: async (offset: number, length: number, { signal, ...rest }: ReadOptions) => {
        const either = AbortSignal.any([signal, closing.signal]);
        const awaited: Demand = { position: offset, aheadBytes: 1, yieldMs };
        this.#ahead.add(ahead);
        this.#awaited.add(awaited);
        waitingSinceMs.set(awaited, this.#clock.monotonic());
        try {
          for (let at = offset; (at += availableFrom(at, offset + length - at)) < offset + length;) {
            awaited.position = ahead.position = at;
            await this.#arrival(either);
          }
          ahead.position = offset + length;
          return await source.read(offset, length, { signal, ...rest });
        } finally {
          this.#awaited.delete(awaited);
          waitingSinceMs.delete(awaited);
        }
      },
      close: () => {
        this.#ahead.delete(ahead);
        closing.abort(new MillraceError("closed", "the reader was closed"));
      },
    };
    return reader;
  }

  #arrival(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      const end = () => {
        this.#arrivals.delete(end);
        signal.removeEventListener("abort", end);
        if (signal.aborted) reject(abortError(signal));
        else resolve();
      };
      this.#arrivals.add(end);
      signal.addEventListener("abort", end, { once: true });
    });
  }

  override status(): SwarmStatus {
    const rate = this.#arrived.reduce((sum, bytes) => sum + bytes, 0) / 2;
    return { ...super.status(), downloadBytesPerSecond: rate };
  }
}

/** A player: it shows the film once it has two seconds, and stops when it has none. */
export class Screen {
  stops = 0;
  /** Seconds of the film that it got, and showed. */
  gotS = 0;
  playedS = 0;
  /** Reads that returned: as long as they do, what is here is still on its way to the player. */
  reads = 0;
  readonly #filmS: number;
  readonly #aheadS: number;
  readonly #room = new Set<() => void>();
  #isPlaying = false;

  /** A swarm that fetches `aheadS` of a film of `filmS`. */
  constructor(filmS: number, aheadS: number) {
    this.#filmS = filmS;
    this.#aheadS = aheadS;
  }

  /** Resolves when it wants more of the film. */
  async room(): Promise<void> {
    while (this.gotS - this.playedS > this.#aheadS) await new Promise<void>((resolve) => this.#room.add(resolve));
  }

  /** Moves time on until the film is over, or `untilS` have passed. */
  async watch(clock: FakeClock, untilS = Infinity): Promise<void> {
    const untilMs = clock.monotonic() + untilS * 1000;
    while (this.playedS < this.#filmS - 0.2 && clock.monotonic() < untilMs) {
      await clock.advanceAsync(STEP_MS);
      for (let quiet = 0, before = this.reads; quiet < QUIET_TURNS; quiet++) {
        await settle();
        if (this.reads > before) quiet = -1;
        before = this.reads;
        // Where the engine has worked for long it lets real timers go first.
        if (!isTurnDue()) continue;
        quiet = -1;
        await socketTurn();
      }
      const isAllHere = this.gotS >= this.#filmS - 0.2;
      const aheadS = this.gotS - this.playedS;
      if (this.#isPlaying) this.playedS += Math.min(aheadS, STEP_MS / 1000);
      else this.#isPlaying = aheadS >= 2 || isAllHere;
      if (this.#isPlaying && aheadS < 0.01 && !isAllHere) [this.#isPlaying, this.stops] = [false, this.stops + 1];
      for (const wake of this.#room) wake();
      this.#room.clear();
    }
  }
}

/** Reads the MPEG TS of `session` for `screen`. Rejects as the body does. */
export async function readTs(session: PlaybackSession, screen: Screen, filmS: number): Promise<void> {
  const body = tsBody(session)!;
  const reader = body.open(0, null).getReader();
  for (;;) {
    await screen.room();
    const { done, value } = await reader.read();
    if (done) return;
    screen.reads++;
    screen.gotS += filmS * value.length / body.sizeBytes!;
  }
}

/** As `readTs`, in segments: the one that takes longer than `patienceMs` is asked for again, as hls.js does. */
export async function readHls(
  session: PlaybackSession,
  screen: Screen,
  clock: FakeClock,
  patienceMs = 120_000,
): Promise<void> {
  for (const { index, durationMs } of session.hls!.segments) {
    await screen.room();
    for (let isDone = false; !isDone;) {
      const reader = segmentBody(session, index)!.open().getReader();
      const timer = clock.setTimeout(() => void reader.cancel(), patienceMs);
      let gotBytes = 0;
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        gotBytes += part.value.length;
        screen.reads++;
      }
      timer.cancel();
      isDone = gotBytes >= (segmentBody(session, index)!.sizeBytes ?? 0);
    }
    screen.gotS += durationMs / 1000;
  }
}
