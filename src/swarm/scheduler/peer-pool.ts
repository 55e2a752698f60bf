/** All peers of the torrent, and the sums over them that decide who is asked for what. */
import type { PeerState } from "./peer-state.ts";
import type { PieceBook } from "./pieces.ts";
import type { ReaderState } from "./reader-state.ts";
import type { Tuning } from "./tuning.ts";

/** Sums over peers stay valid for this long. */
const SURVEY_EVERY_MS = 5;

/** The peers, and what they can do together. */
export class PeerPool {
  readonly #book: PieceBook;
  readonly #readers: ReadonlyMap<number, ReaderState>;
  readonly #tuning: Tuning;
  readonly #peers = new Map<number, PeerState>();
  readonly #rates: number[] = [];
  #unknownRate: number;
  #isProven = false;
  #bytesPerSecond = 0;
  #bestEtaMs = 0;
  #share = 1;
  #isCalm = false;
  #surveyedMs = Number.NEGATIVE_INFINITY;
  #surveyedPeers = 0;

  constructor(book: PieceBook, readers: ReadonlyMap<number, ReaderState>, tuning: Tuning) {
    this.#book = book;
    this.#readers = readers;
    this.#tuning = tuning;
    this.#unknownRate = tuning.unknownBytesPerSecond;
  }

  /** By their numbers. */
  get peers(): ReadonlyMap<number, PeerState> {
    return this.#peers;
  }

  /** Bytes/s assumed for peers with no history: half the median of the known rates. */
  get unknownRate(): number {
    return this.#unknownRate;
  }

  /** Whether any usable peer has delivered enough for its rate to be known. */
  get isProven(): boolean {
    return this.#isProven;
  }

  /** Bytes/s of all usable peers. */
  get bytesPerSecond(): number {
    return this.#bytesPerSecond;
  }

  /** Shortest time in which some usable peer could deliver one more block. */
  get bestEtaMs(): number {
    return this.#bestEtaMs;
  }

  /** A reader's critical span in blocks, divided by the peers: the most that is requested from a peer of unknown rate. */
  get share(): number {
    return this.#share;
  }

  /** Every reader has media ahead, and the peers bring much more than the bitrate: short seeks matter more than speed. */
  get isCalm(): boolean {
    return this.#isCalm;
  }

  /** A peer joined. */
  add(peer: PeerState): void {
    this.#peers.set(peer.id, peer);
  }

  /** A peer left. */
  remove(peer: PeerState): void {
    this.#peers.delete(peer.id);
  }

  /** Of the peers that still have room, the soonest needs this long for a block. */
  lead(etaMs: number): void {
    this.#bestEtaMs = etaMs;
  }

  /** Refreshes the sums, unless they are fresh. */
  survey(nowMs: number): void {
    if (nowMs - this.#surveyedMs < SURVEY_EVERY_MS && this.#peers.size === this.#surveyedPeers) return;
    this.#surveyedMs = nowMs;
    this.#surveyedPeers = this.#peers.size;
    const book = this.#book;
    const rates = this.#rates;
    rates.length = 0;
    for (const peer of this.#peers.values()) {
      peer.judge(nowMs, this.#isProven);
      if (peer.measured && peer.usable) rates.push(peer.rate(0));
    }
    rates.sort((a, b) => a - b);
    this.#isProven = rates.length > 0;
    // Half the median: when others have a known rate, a stranger must not be trusted with blocks that are due now.
    this.#unknownRate = this.#isProven ? rates[rates.length >> 1]! / 2 : this.#tuning.unknownBytesPerSecond;
    const critical = Math.max(this.#tuning.criticalBytes, book.pieceBytes) / book.blockBytes;
    // Choking peers count too: they will want their share a round trip later.
    this.#share = Math.max(1, Math.floor(critical / Math.max(1, this.#peers.size)));
    this.#bytesPerSecond = 0;
    this.#bestEtaMs = Number.POSITIVE_INFINITY;
    for (const peer of this.#peers.values()) {
      if (!peer.takesRequests) continue;
      this.#bytesPerSecond += peer.rate(this.#unknownRate);
      this.#bestEtaMs = Math.min(this.#bestEtaMs, peer.etaMs(this.#unknownRate, nowMs));
    }
    this.#isCalm = true;
    for (const reader of this.#readers.values()) {
      const ahead = reader.advance() * book.pieceBytes - reader.position;
      this.#isCalm &&= ahead > reader.bytesPerSecond * (this.#tuning.calmMs / 1000) ||
        reader.cursor >= reader.windowEnd;
      this.#isCalm &&= this.#bytesPerSecond > 2 * reader.bytesPerSecond;
    }
  }
}
