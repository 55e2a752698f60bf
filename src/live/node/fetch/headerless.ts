/**
 * Has a header sent once rather than with each tree. The blocks of a piece come from several parents. If each sent the
 * header first, only the first copy would be news, and the copies were a third of what members say to each other. So a
 * parent whose trees rarely bring a header first is asked to leave headers out. If one of its blocks is the first after
 * all, the block is kept for a moment and its header is requested.
 */
import { encodeLiveMessage, MAX_ASKED_HEADERS } from "../../messages.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import type { Parents } from "../trees/parents.ts";
import { Notes } from "../neighbour/notes.ts";

/** Weight of one block in the share of blocks of a tree whose header was news. */
const NEWS_WEIGHT = 0.07;
/**
 * A tree leaves headers out when fewer of its blocks bring news than this, and sends them again above `OFTEN`. With 0.5, 0.7 and a
 * weight of 0.1 a simulated viewer got 8.1 headers a second of a stream that has 5.1, and asked for 0.9. With this it gets 7.0 and
 * asks for 1.9, most of them along with a PONG.
 */
const SELDOM = 0.6;
const OFTEN = 0.85;
/** A tree's share before its first block: it leaves headers out once a block of it has brought no news. */
const UNKNOWN = 0.6;
/** Blocks that wait for their header: of one parent, and of all, 256 KiB and 1 MiB. */
const HELD_PER_PEER = 16;
const HELD = 64;
/**
 * A block waits this long for its header, ms. A parent that leaves headers out and sends none when asked must be late
 * with it.
 */
const HOLD_MS = 2000;
/** A header is requested again after this, ms: most round trips are shorter. */
const ASK_AGAIN_MS = 200;
/** Pieces for which we remember the neighbour that brought the header: as many as two seconds of a fast stream have. */
const BROUGHT = 64;

interface Held {
  readonly peer: LivePeer;
  readonly seq: number;
  readonly atMs: number;
  readonly release: () => void;
}

/** What a neighbour is to do for us. */
interface Asked {
  /** Mask of the substreams that it is to push without headers. */
  leanMask: number;
  /**
   * Headers that it is yet to be asked for, along with `leanMask`; null when it knows all that. That goes along with the PONG to
   * the PING behind the block that has just come, or with what else is sent to it before the next tick.
   */
  due: number[] | null;
}

/** Which parents leave headers out, and the blocks that wait for one. */
export class Headerless {
  readonly #view: NodeView;
  readonly #trees: Parents;
  readonly #askedOf = new Notes<Asked>(() => ({ leanMask: 0, due: null }));
  #held: Held[] = [];
  readonly #asked = new Map<number, { readonly atMs: number; readonly peers: ReadonlySet<LivePeer> }>();
  readonly #broughtBy = new Map<number, LivePeer>();
  readonly #parents: (LivePeer | null)[];
  readonly #news: Float64Array;

  constructor(view: NodeView, trees: Parents) {
    this.#view = view;
    this.#trees = trees;
    this.#parents = new Array<LivePeer | null>(view.substreams).fill(null);
    this.#news = new Float64Array(view.substreams);
  }

  /**
   * Block `block` of piece `seq` came from `peer` before its header. Returns whether the block is kept; if so,
   * `release` is called once the header has arrived. Only parents may send such blocks.
   */
  hold(peer: LivePeer, seq: number, block: number, release: () => void): boolean {
    const nowMs = this.#view.now();
    const substream = this.#view.substreamOf(seq, block);
    if (!this.#trees.feeds(peer, substream) || this.#view.window.newest === null) return false;
    if (this.#held.length >= HELD) return false;
    if (this.#held.filter((one) => one.peer === peer).length >= HELD_PER_PEER) return false;
    this.#held.push({ peer, seq, atMs: nowMs, release });
    // The tree that brought headers may be cut off. Requesting a header for each block would add a round trip at each
    // step.
    if (this.#parents[substream] === peer) this.#news[substream] = UNKNOWN;
    this.#tell(peer, substream, false);
    this.#ask(seq, nowMs);
    return true;
  }

  /** A header from `peer` was verified, and nobody had sent it before. */
  learned(peer: LivePeer, seq: number): void {
    this.#broughtBy.set(seq, peer);
    for (const oldest of this.#broughtBy.size > BROUGHT ? this.#broughtBy.keys() : []) {
      this.#broughtBy.delete(oldest);
      break;
    }
    this.#asked.delete(seq);
    const ready = this.#held.filter((one) => one.seq === seq);
    if (ready.length === 0) return;
    this.#held = this.#held.filter((one) => one.seq !== seq);
    for (const { release } of ready) release();
  }

  /** `peer` pushed a block of piece `seq`, whose header is known. */
  came(peer: LivePeer, seq: number, substream: number): void {
    const bringer = this.#broughtBy.get(seq);
    if (bringer === undefined || !this.#trees.feeds(peer, substream)) return;
    if (this.#parents[substream] !== peer) {
      this.#parents[substream] = peer;
      this.#news[substream] = UNKNOWN;
      this.#tell(peer, substream, false);
    }
    const share = this.#news[substream]! += ((bringer === peer ? 1 : 0) - this.#news[substream]!) * NEWS_WEIGHT;
    if (share < SELDOM) this.#tell(peer, substream, true);
    else if (share > OFTEN) this.#tell(peer, substream, false);
  }

  /** Asks again for headers that have not come, and gives up blocks that waited too long. */
  tick(nowMs: number): void {
    if (this.#held.length === 0) this.#asked.clear();
    this.#held = this.#held.filter(({ peer, atMs }) => !peer.closed && nowMs - atMs < HOLD_MS);
    for (const { seq } of this.#held) this.#ask(seq, nowMs);
    for (const peer of this.#view.peers) peer.sendEncoded(this.take(peer), nowMs);
  }

  /** What is due of HEADERS for `peer`, encoded, and taken for sent. */
  take(peer: LivePeer): Uint8Array[] {
    const asked = this.#askedOf.of(peer);
    const { due, leanMask } = asked;
    asked.due = null;
    return due === null ? [] : [encodeLiveMessage({ type: "headers", lean: leanMask, seqs: due })];
  }

  /** Asks the senders of the blocks that wait for this header, one after another: one of them may withhold it. */
  #ask(seq: number, nowMs: number): void {
    const asked = this.#asked.get(seq);
    if (asked !== undefined && nowMs - asked.atMs < ASK_AGAIN_MS) return;
    const senders = this.#held.filter((one) => one.seq === seq).map(({ peer }) => peer);
    const before = senders.every((peer) => asked?.peers.has(peer)) ? new Set<LivePeer>() : asked?.peers ?? [];
    const peers = new Set(before);
    const next = senders.find((peer) => !peers.has(peer))!;
    this.#asked.set(seq, { atMs: nowMs, peers: peers.add(next) });
    const asking = this.#askedOf.of(next);
    (asking.due ??= []).push(seq);
    if (asking.due.length === MAX_ASKED_HEADERS) next.sendEncoded(this.take(next), nowMs);
  }

  #tell(peer: LivePeer, substream: number, isLean: boolean): void {
    const asked = this.#askedOf.of(peer);
    const leanMask = isLean ? asked.leanMask | (1 << substream) : asked.leanMask & ~(1 << substream);
    if (leanMask === asked.leanMask) return;
    asked.leanMask = leanMask;
    asked.due ??= [];
  }
}
