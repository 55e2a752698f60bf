/**
 * What the parts of one member share: the stream, its pieces that are downloaded, the neighbours, the clock. It is built
 * first and handed to all parts.
 */
import type { MillraceError } from "../../../errors.ts";
import { blockCount } from "../../header.ts";
import type { LiveVerifier } from "../../signer.ts";
import { Conduct } from "./conduct.ts";
import { type LiveCounters, newCounters } from "../live-counters.ts";
import type { LiveNodeOptions } from "../live-options.ts";
import type { LivePeer } from "./live-peer.ts";
import { PieceWindow } from "../stream/piece-window.ts";
import { type Mark, newMark } from "./place.ts";
import { POLICY } from "../policy.ts";
import type { SeatBook } from "./seat-book.ts";
import { StreamRate } from "../stream/stream-rate.ts";
import { substreamOf } from "../stream/substreams.ts";

/** One member, as its parts see it. */
export class NodeView {
  readonly isSource: boolean;
  readonly substreams: number;
  readonly pieceLengthBytes: number;
  readonly blocksPerPiece: number;
  readonly clock: LiveNodeOptions["clock"];
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly verifier: LiveVerifier;
  /** The pieces that are downloaded or wanted. */
  readonly window: PieceWindow;
  /** The rate of the stream. */
  readonly rate: StreamRate;
  readonly peers = new Set<LivePeer>();
  readonly counters: LiveCounters = newCounters();
  /** Our children, to be asked about. */
  readonly seats: SeatBook;
  /** What neighbours have done before. */
  readonly conduct = new Conduct();
  /** Our mark in the paths of those below us. */
  readonly mark: Mark;
  /** Drops `peer`, which did what no honest member does. */
  readonly ban: (peer: LivePeer, error: MillraceError) => void;
  #waryUntilMs = -Infinity;

  constructor(options: LiveNodeOptions, seats: SeatBook, ban: (peer: LivePeer, error: MillraceError) => void) {
    this.seats = seats;
    const { stream, role, clock, random, verifier } = options;
    this.isSource = role === "source";
    this.substreams = stream.substreams;
    this.pieceLengthBytes = stream.pieceLengthBytes;
    this.blocksPerPiece = blockCount(stream.pieceLengthBytes);
    this.clock = clock;
    this.random = random;
    this.verifier = verifier;
    this.mark = newMark(random);
    this.window = new PieceWindow(stream.windowS * 1000);
    this.rate = new StreamRate(this.window, stream);
    this.ban = ban;
  }

  /** Monotonic ms. */
  now(): number {
    return this.clock.monotonic();
  }

  /**
   * True while we assume that poisoners are present. A broadcaster always does, because it receives no blocks that
   * could reveal them.
   */
  get isWary(): boolean {
    return this.isSource || this.now() < this.#waryUntilMs;
  }

  /** A false block came: for a while we assume that poisoners are present. */
  beWary(): void {
    this.#waryUntilMs = this.now() + POLICY.forgiveMs;
  }

  /** Substream of a block. */
  substreamOf(seq: number, block: number): number {
    return substreamOf(seq, block, this.blocksPerPiece, this.substreams);
  }
}
