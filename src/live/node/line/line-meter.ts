/**
 * Learns the rate of our uplink from the arrival of payload, like delay-based congestion control (LEDBAT, RFC 6817;
 * BBR). While more waits here than goes out, and payload that goes out waits for the line, it arrives at the rate of
 * the line. Everything else (bytes that a kernel or router accepts, blocks that travel alone) shows at most that the
 * line is no slower.
 */
import { LossSign } from "./loss-sign.ts";
import { BLOCK_BYTES } from "../../../wire/types.ts";

/** What waiting times mean, ms, and what follows from them. */
interface Rules {
  /**
   * Time that a block may wait in the network for the line. Blocks there can be neither shed nor overtaken, and each step of a
   * tree waits as long. With a much shorter time the line would sometimes be idle.
   */
  readonly targetMs: number;
  /** A shorter waiting time is no sign of a queue: schedulers and radio links delay as much. */
  readonly leastWaitMs: number;
  /** Bytes that a known line may have in the network, as time at its rate beyond round trips: PONGs may come late. */
  readonly windowMs: number;
}

const RULES: Rules = { targetMs: 50, leastWaitMs: 25, windowMs: 300 };
/**
 * Where packets are lost. A block takes some round trips more than the way is long, whatever our line carries, and what waits to be
 * sent again counts as under way: with the window of other lines it was that window that set the rate, and so the rate that was
 * believed.
 */
const LOSSY_RULES: Rules = { targetMs: 150, leastWaitMs: 100, windowMs: 1000 };
/** What waited longer than our line explains by this waited for its connection, ms. */
const LATE_MS = 100;
/** The shortest waiting time within this period counts: PONGs come late for other reasons, too, ms. */
const WAIT_MS = 250;
/**
 * And that of so many arrivals, as far back as `WITNESS_MS`. A connection that loses packets delivers late
 * whatever our line does, while a block that waits for the line is followed by others that do.
 */
const WITNESSES = 6;
const WITNESS_MS = 1500;
/** Blocks must have waited here for this long before the rate of arrival is taken as a sample, ms. */
const SAMPLE_MS = 300;
const LONG_SAMPLE_MS = 1000;
/** Weight of a sample: the first ones are averaged, and old ones fade. */
const SAMPLE_SHARE = 0.1;
/** A line on which the first blocks wait this long is slow, whatever the other measurements say, ms. */
const SLOW_MS = 150;
const SLOW_BLOCKS = 2;
/** After this many samples a single block shows nothing new. */
const MANY_SAMPLES = 8;
/** A rate is not believed when it exceeds what arrived in the best second so far by more than this factor. */
const BELIEF = 1.5;
/**
 * The exception: a single block may show up to this many times the first guess, because a member that joins a crowd is
 * needed at once.
 */
const SHOWN = 4;
/** What a burst on the idle line may show, in first guesses: nobody is believed to have more (`POLICY.believedUp`). */
const PROBED = 8;
/** A probe counts as this many samples: it lasted a quarter of a second, when nothing else was sent. */
const PROBE_SAMPLES = 3;
/** Hand-over pace on a known line, in shares of its rate, while nothing waits there: it may have become faster. */
const PROBE_GAIN = 1.25;
/**
 * The lowest such share, however long the queue there. It is hardly below what subscriptions fill (`POLICY.loadLimit`): with 0.7
 * a line that was taken for full kept blocks waiting, and so stayed full.
 */
const DRAIN_GAIN = 0.9;
/** Waiting time beyond the target at which that share would reach zero, ms. */
const DRAIN_MS = 400;
/** Arrived bytes are counted in this many parts of a second. */
const PARTS = 4;
const PART_MS = 1000 / PARTS;
/** Bytes in the network at first: two blocks, so that one waits while the other travels. */
const FIRST_WINDOW_BYTES = 2 * BLOCK_BYTES;
/** Maximum bytes in the network: 25 Mb/s to somebody 300 ms away. */
const MAX_WINDOW_BYTES = 1024 * 1024;

/** Payload that has arrived, all in one acknowledgement. */
export interface Arrival {
  /** Names the connection. */
  readonly link: object;
  readonly allBytes: number;
  /** The part that was handed over last. */
  readonly bytes: number;
  /** Payload under way when that part was handed to the network, itself included, bytes. */
  readonly aheadBytes: number;
  /** How long that part was on its way beyond the time that the way takes when nothing waits, ms. */
  readonly waitedMs: number;
  /** Round trip of that connection when nothing waits, ms. */
  readonly baseMs: number;
  /** True when `waitedMs` is compared with a time that was measured, and not guessed while the line was busy. */
  readonly isSure: boolean;
  /** True when more was waiting here, held back by `windowBytes` or `paceBytesPerS`. */
  readonly wasLimited: boolean;
}

/** How long something that arrived had waited, ms. */
interface Wait {
  /** Names the connection. */
  readonly link: object;
  readonly ms: number;
  /** The part that our line can have caused. */
  readonly lineMs: number;
  readonly atMs: number;
}

/** Measures the up-link. One per node: all its connections share the line. */
export class LineMeter {
  readonly #guess: () => number;
  readonly #isTold: boolean;
  /** The learned rate, bytes/s; 0 before. */
  #rate = 0;
  /** Samples taken while the line was the limit. */
  #samples = 0;
  /** Samples that a burst counts as once the line is the limit: it came through as fast as any line is believed to be. */
  #probeSamples = 0;
  /** The rate at which a burst came through, bytes/s; 0 without one. */
  #probedBytesPerS = 0;
  /** The rates that the two quickest blocks suggest for the line, bytes/s, the quicker first. */
  readonly #shown = [0, 0] as [number, number];
  /** Blocks in a row that took long. */
  #slowBlocks = 0;
  /** The connection of the last of them. */
  #slowLink: object | null = null;
  readonly #parts = new Float64Array(PARTS);
  #part = 0;
  #bestBytesPerS = 0;
  /** Monotonic ms of the last arrival while more waited here; null when nothing does. */
  #fullAtMs: number | null = null;
  /** Since when more has waited here without a pause; null when nothing does. */
  #fullSinceMs: number | null = null;
  /** Time in which more waited here, and the bytes that arrived in it, since the last sample. */
  #fullMs = 0;
  #fullBytes = 0;
  /** What arrived meanwhile on connections that had been set aside, bytes. */
  #asideBytes = 0;
  readonly #loss = new LossSign();
  /** Recent waiting times. */
  #waits: Wait[] = [];
  #meanBaseMs = 0;
  #window = FIRST_WINDOW_BYTES;

  /** `guessBytesPerS`: the assumed rate until something is known. `isTold`: a user stated it. */
  constructor(guessBytesPerS: () => number, isTold: boolean) {
    this.#guess = guessBytesPerS;
    this.#isTold = isTold;
    if (!isTold) return;
    this.#samples = MANY_SAMPLES;
    this.#rate = guessBytesPerS();
  }

  /** The line's rate, bytes/s: measured, or else a lower bound. */
  get bytesPerS(): number {
    return this.isKnown ? this.#rate : Math.max(this.#rate, this.#guess());
  }

  /** True when the line was the limit at least once, so that its rate is measured and not only a lower bound. */
  get isKnown(): boolean {
    return this.#samples > 0;
  }

  /**
   * The line's rate as the second-quickest block suggests, bytes/s; 0 before there are two, `Infinity` when it was too
   * quick to measure. The quickest is not used: its round trip may have been compared with one that was not the least.
   */
  get shownBytesPerS(): number {
    return this.#shown[1];
  }

  /** What arrived in the best second so far, bytes. */
  get carriedBytesPerS(): number {
    return this.#bestBytesPerS;
  }

  /** True while arrivals show that packets are lost: see `LossSign`. */
  get losesPackets(): boolean {
    return this.#loss.isLossy;
  }

  /** Payload that may be in the network, bytes. */
  get windowBytes(): number {
    return this.#window;
  }

  /** What may be handed to the network, bytes/s; `Infinity` while only the window limits that. */
  paceBytesPerS(nowMs: number): number {
    if (!this.isKnown) return Infinity;
    const waitMs = this.#queueMs(nowMs);
    const { targetMs, leastWaitMs } = this.#rules;
    const leastGain = this.#isFullLong(nowMs) ? 1 : DRAIN_GAIN;
    const drain = Math.max(leastGain, 1 - (waitMs - targetMs) / DRAIN_MS);
    return this.#rate * (waitMs < leastWaitMs ? PROBE_GAIN : drain);
  }

  /** A burst on the idle line came through at this rate, bytes/s. */
  probed(bytesPerS: number): void {
    if (this.isKnown) return;
    const mostBytesPerS = PROBED * this.#guess();
    this.#shown.fill(Math.max(this.#shown[0], bytesPerS));
    this.#probedBytesPerS = Math.min(bytesPerS, mostBytesPerS);
    this.#rate = Math.max(this.#rate, this.#probedBytesPerS);
    if (bytesPerS >= mostBytesPerS) return void (this.#probeSamples = PROBE_SAMPLES);
    this.#samples = PROBE_SAMPLES;
    this.#rate = bytesPerS;
  }

  /** The part of `inFlightBytes` that waits for the line, bytes; the rest travels. */
  waitingBytes(inFlightBytes: number): number {
    return Math.max(0, inFlightBytes - this.bytesPerS * this.#meanBaseMs / 1000);
  }

  /** How long what arrived last had waited for the line, ms; 0 when nothing arrived lately. */
  queuedMs(nowMs: number): number {
    const last = this.#waits.at(-1);
    return last === undefined || nowMs - last.atMs > 2 * WAIT_MS ? 0 : Math.max(0, last.ms);
  }

  /** Something has arrived. */
  arrived({ link, allBytes, bytes, aheadBytes, waitedMs, baseMs, isSure, wasLimited }: Arrival, nowMs: number): void {
    this.#count(allBytes, nowMs);
    // A guess that is too long makes a block seem quick, and a slow line that is known would be taken for a fast one.
    if (isSure || !this.isKnown) this.#judge(link, bytes, aheadBytes, waitedMs);
    this.#meanBaseMs += (baseMs - this.#meanBaseMs) * (this.#meanBaseMs === 0 ? 1 : 0.1);
    // A block waits for itself, too. And it can't have waited for more of our line than was under way before it, less what travels:
    // the rest of the time was its connection's.
    const aheadMs = Math.max(0, (aheadBytes - bytes) / this.bytesPerS * 1000 - this.#meanBaseMs);
    const lineMs = waitedMs - bytes / this.bytesPerS * 1000;
    const wait = { link, ms: lineMs, lineMs: Math.min(lineMs, aheadMs), atMs: nowMs };
    this.#loss.noted(link, lineMs - wait.lineMs > LATE_MS, nowMs);
    this.#noteWait(wait);
    if (wasLimited) this.#fullSinceMs ??= nowMs;
    if (wasLimited) {
      this.#sample(allBytes, nowMs);
      this.#adapt(allBytes, nowMs);
    } else {
      // A block that left right behind another waited, too. Without it only the short gaps at the ends of bursts would count,
      // and a line that is busy in bursts would be taken for up to twice as fast.
      if (this.#fullAtMs !== null && aheadBytes > bytes) this.#sample(allBytes, nowMs);
      this.#fullAtMs = null;
    }
    if (!wasLimited) this.#fullSinceMs = null;
    if (!this.isKnown) this.#rate = Math.max(this.#rate, this.#lastBytesPerS);
  }

  get #rules(): Rules {
    return this.#loss.isLossy ? LOSSY_RULES : RULES;
  }

  /** `bytes` arrived on a connection that had been set aside: they took the line's time at some moment. */
  arrivedLate(bytes: number): void {
    if (this.#fullAtMs !== null) this.#asideBytes += bytes;
  }

  /** Learns from one block: two slow ones in a row show that the line is slow, a quick one that it isn't. */
  #judge(link: object, bytes: number, aheadBytes: number, waitedMs: number): void {
    this.#show(waitedMs < RULES.leastWaitMs ? Infinity : bytes / waitedMs * 1000);
    if (this.#samples >= MANY_SAMPLES) return;
    if (waitedMs < SLOW_MS) this.#slowBlocks = 0;
    else if (link !== this.#slowLink || this.#slowBlocks === 0) this.#slowBlocks++;
    this.#slowLink = link;
    // Part of the payload before it may have arrived already.
    if (!this.isKnown && this.#slowBlocks >= SLOW_BLOCKS) this.#learn((bytes + aheadBytes) / 2 / waitedMs * 1000, true);
    const leastBytesPerS = Math.min(
      Math.max(this.#mostBytesPerS, SHOWN * this.#guess()),
      bytes / (waitedMs + RULES.leastWaitMs) * 1000,
    );
    // Then earlier blocks led to a wrong rate, not just an inexact one.
    if (leastBytesPerS > 2 * this.bytesPerS) this.#samples = 0;
    this.#rate = Math.max(this.#rate, leastBytesPerS);
  }

  #show(bytesPerS: number): void {
    if (bytesPerS >= this.#shown[0]) {
      this.#shown[1] = this.#shown[0];
      this.#shown[0] = bytesPerS;
    } else this.#shown[1] = Math.max(this.#shown[1], bytesPerS);
  }

  #noteWait(wait: Wait): void {
    const { length } = this.#waits;
    this.#waits = this.#waits.filter(({ atMs }, i) => {
      return wait.atMs - atMs <= (i > length - WITNESSES ? WITNESS_MS : WAIT_MS);
    });
    this.#waits.push(wait);
  }

  /** How long everything waited lately, whatever its connection, ms; `Infinity` when nothing arrived. */
  leastWaitMs(nowMs: number): number {
    return Math.min(...this.#waits.filter(({ atMs }) => nowMs - atMs <= WITNESS_MS).map(({ ms }) => ms));
  }

  #queueMs(nowMs: number): number {
    const last = this.#waits.at(-1);
    if (last === undefined || nowMs - last.atMs > WAIT_MS) return 0;
    return Math.min(...this.#waits.filter(({ atMs }) => nowMs - atMs <= WITNESS_MS).map(({ lineMs }) => lineMs));
  }

  #isFullLong(nowMs: number): boolean {
    return this.#fullSinceMs !== null && nowMs - this.#fullSinceMs >= LONG_SAMPLE_MS;
  }

  /** More was waiting here when this arrived. */
  #sample(bytes: number, nowMs: number): void {
    if (this.#fullAtMs !== null) {
      this.#fullMs += nowMs - this.#fullAtMs;
      this.#fullBytes += bytes;
    }
    this.#fullAtMs = nowMs;
    if (this.#fullMs < (this.#loss.isLossy ? LONG_SAMPLE_MS : SAMPLE_MS)) return;
    const isLine = this.#queueMs(nowMs) >= this.#rules.leastWaitMs &&
      this.#waits.some(({ link }) => link !== this.#waits[0]!.link);
    // Without a queue the sample is only a lower bound, and PONGs that came late together would make even that wrong.
    if (!isLine && this.#fullMs < LONG_SAMPLE_MS) return;
    const least = this.#fullBytes / this.#fullMs * 1000;
    const most = least + this.#asideBytes / this.#fullMs * 1000;
    this.#fullMs = this.#fullBytes = this.#asideBytes = 0;
    // Where packets are lost, a rate that a user stated is not lowered: what arrives shows what the connections carry.
    // A queue that empties between two pieces is no sign of a line that carries too little, and what was stuck has arrived, too.
    const isLong = (!this.#loss.isLossy || !this.#isTold) && (this.#isFullLong(nowMs) || this.#samples < MANY_SAMPLES);
    const mayLower = isLine && isLong && most < this.bytesPerS;
    if (!mayLower && least < this.bytesPerS) return;
    this.#learn(mayLower ? most : least, isLine);
  }

  #learn(sample: number, isLine: boolean): void {
    if (isLine) this.#samples += 1 + (this.isKnown ? 0 : this.#probeSamples);
    const share = this.isKnown ? Math.max(SAMPLE_SHARE, 1 / Math.max(1, this.#samples)) : 1;
    this.#rate = Math.min(this.#rate + (sample - this.#rate) * share, this.#mostBytesPerS);
  }

  get #mostBytesPerS(): number {
    return Math.max(this.#probedBytesPerS, BELIEF * Math.max(this.#bestBytesPerS, this.#guess()));
  }

  /** More was waiting than went out. While the rate is unknown the window grows until that adds delay. */
  #adapt(bytes: number, nowMs: number): void {
    if (this.isKnown) {
      const fullBytes = this.#rate * (this.#meanBaseMs + this.#rules.windowMs) / 1000;
      this.#window = Math.min(MAX_WINDOW_BYTES, Math.max(FIRST_WINDOW_BYTES, fullBytes));
    } else if (this.#queueMs(nowMs) < RULES.targetMs) this.#window = Math.min(MAX_WINDOW_BYTES, this.#window + bytes);
  }

  get #lastBytesPerS(): number {
    return this.#parts.reduce((sum, bytes) => sum + bytes, 0);
  }

  #count(bytes: number, nowMs: number): void {
    const part = Math.floor(nowMs / PART_MS);
    if (part - this.#part >= PARTS) this.#parts.fill(0);
    else for (let next = this.#part + 1; next <= part; next++) this.#parts[next % PARTS] = 0;
    this.#part = part;
    this.#parts[part % PARTS] = this.#parts[part % PARTS]! + bytes;
    this.#bestBytesPerS = Math.max(this.#bestBytesPerS, this.#lastBytesPerS);
  }
}
