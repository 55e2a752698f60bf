/**
 * Gets the hashes of pieces from peers (BEP 52): a magnet of version 2 leads to the `info` dictionary alone, and that has
 * only the root of each file's hash tree. Every answer is proven by that root, so whoever sends a wrong one is a liar.
 */
import { equalBytes, toHex } from "../../bytes/hex.ts";
import { hashAt, pieceLevel, rootAbove, rootLevel, TREE_HASH_BYTES } from "../../bytes/merkle.ts";
import { lacksLayers } from "../../metainfo/hash-trees.ts";
import { parseInfo } from "../../metainfo/info.ts";
import type { HashTree, Metainfo } from "../../metainfo/types.ts";
import type { Clock, Timer } from "../../ports.ts";
import { HashMessageId, type HashRequest, MAX_HASHES, uncleCount } from "../../wire/hash-messages.ts";
import { grave } from "../../wire/offence.ts";
import type { PeerLink } from "../../wire/types.ts";

/** Requests at one peer: 16 KiB of hashes each. */
const MAX_ASKED = 4;

/** A request that is not answered after this long is sent to another peer as well, ms. */
const HEDGE_MS = 600;

/** Peers that are asked for the same hashes at once. */
const MAX_BESIDE = 4;

/** An answer is waited for this long, ms. */
const PATIENCE_MS = 3_000;

/** A peer that refused, or was silent for too long, is asked again after this long, ms. */
const REST_MS = 3_000;

/** A piece with wrong blocks waits this long for the hashes of its blocks, ms: after that it is fetched again. */
const MAX_WAIT_MS = 1_500;

/** How often that is looked at, ms. */
const LOOK_MS = 200;

/** A peer as the fetch sees it. */
export interface HashSource {
  readonly isReady: boolean;
  readonly link: Pick<PeerLink, "sendHash"> | null;
  drop(error?: Error): void;
}

interface Job {
  readonly request: HashRequest;
  /** The node above all that is asked for, 32 bytes: what the answer has to lead to. */
  readonly top: Uint8Array;
  got(nodes: Uint8Array): void | Promise<void>;
}

/** Since when whom is asked, ms. */
type Asked<T> = Map<T, number>;

/** The layers of one torrent. */
export class LayerFetch<T extends HashSource> {
  readonly #clock: Clock;
  readonly #peers: { readonly sessions: Iterable<T> };
  #waiting: Job[] = [];
  /** By `keyOf`. */
  readonly #asked = new Map<string, { readonly job: Job; readonly of: Asked<T> }>();
  /** Requests without a good answer so far: peers that have fewer are asked first. */
  readonly #tries = new WeakMap<T, number>();
  readonly #restUntilMs = new WeakMap<T, number>();
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(clock: Clock, peers: { readonly sessions: Iterable<T> }) {
    this.#clock = clock;
    this.#peers = peers;
  }

  /** Calls `done` with `metainfo` and the layers that it lacks; at once if it lacks none, never after `close`. Call it once. */
  complete(metainfo: Metainfo, done: (whole: Metainfo) => void): void {
    if (!lacksLayers(metainfo)) return done(metainfo);
    const { trees = [], pieceLengthBytes, infoBytes } = metainfo;
    const pieceLayers: Record<string, Uint8Array> = {};
    let left = 0;
    for (const tree of trees) {
      const root = toHex(tree.root);
      // Files that are the same share a tree.
      if (tree.pieceCount === 1 || root in pieceLayers) continue;
      const layer = tree.layer ?? new Uint8Array(tree.pieceCount * TREE_HASH_BYTES);
      pieceLayers[root] = layer;
      if (tree.layer !== null) continue;
      for (const request of requestsFor(tree, pieceLengthBytes)) {
        const at = request.index * TREE_HASH_BYTES;
        const got = (nodes: Uint8Array) => {
          layer.set(nodes.subarray(0, layer.length - at), at);
          return --left === 0 ? whole() : undefined;
        };
        left++;
        this.#waiting.push({ request, top: tree.root, got });
      }
    }
    const whole = async () => {
      const { pieceHashes, trees } = await parseInfo(infoBytes, { pieceLayers });
      if (!this.#isClosed) done({ ...metainfo, pieceHashes, trees: trees! });
    };
    this.pump();
  }

  /**
   * The nodes of `request`, which lead to `top`; null when nobody can be asked for them, or has sent them after
   * `MAX_WAIT_MS`: a piece waits for them.
   */
  row(request: HashRequest, top: Uint8Array): Promise<Uint8Array | null> {
    return new Promise((resolve) => {
      const end = (nodes: Uint8Array | null) => {
        timer.cancel();
        this.#asked.delete(keyOf(request));
        this.#waiting = this.#waiting.filter((other) => other !== job);
        resolve(nodes);
      };
      const job: Job = { request, top, got: end };
      const timer = this.#clock.setTimeout(() => end(null), MAX_WAIT_MS);
      this.#waiting.push(job);
      this.pump();
      if (this.#isClosed || this.#waiting.includes(job)) end(null);
    });
  }

  /** Sends the requests that wait. Call it when a peer is ready or has left. */
  pump(): void {
    if (this.#isClosed || this.#waiting.length + this.#asked.size === 0) return;
    const nowMs = this.#clock.monotonic();
    const counts = new Map<T, number>();
    for (const [key, { job, of }] of this.#asked) {
      for (const [session, sinceMs] of of) {
        const isLate = nowMs - sinceMs >= PATIENCE_MS;
        if (isLate) this.#restUntilMs.set(session, nowMs + REST_MS);
        if (isLate || !session.isReady) of.delete(session);
        else counts.set(session, (counts.get(session) ?? 0) + 1);
      }
      if (of.size === 0) this.#takeBack(key, job);
    }
    for (const { job, of } of this.#asked.values()) {
      const isSlow = [...of.values()].every((sinceMs) => nowMs - sinceMs >= HEDGE_MS);
      if (isSlow && of.size < MAX_BESIDE) this.#ask(job, of, counts, nowMs);
    }
    while (this.#waiting.length > 0) {
      const job = this.#waiting.at(-1)!;
      const of: Asked<T> = new Map();
      if (!this.#ask(job, of, counts, nowMs)) break;
      this.#waiting.pop();
      this.#asked.set(keyOf(job.request), { job, of });
    }
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimeout(() => this.pump(), LOOK_MS);
  }

  /** Asks the best peer that is not among `of`; false when there is none. */
  #ask({ request }: Job, of: Asked<T>, counts: Map<T, number>, nowMs: number): boolean {
    const triesOf = (session: T) => this.#tries.get(session) ?? 0;
    let best: T | null = null;
    for (const session of this.#peers.sessions) {
      if (!session.isReady || of.has(session) || (this.#restUntilMs.get(session) ?? -Infinity) > nowMs) continue;
      if ((counts.get(session) ?? 0) >= MAX_ASKED) continue;
      if (best === null || triesOf(session) < triesOf(best)) best = session;
    }
    if (best === null) return false;
    of.set(best, nowMs);
    counts.set(best, (counts.get(best) ?? 0) + 1);
    this.#tries.set(best, triesOf(best) + 1);
    best.link!.sendHash(HashMessageId.request, request);
    return true;
  }

  /** A peer sent hashes. Those that are not asked for, or no longer, are ignored. */
  async arrived(session: T, request: HashRequest, hashes: Uint8Array): Promise<void> {
    const key = keyOf(request);
    const asked = this.#asked.get(key);
    if (asked === undefined) return;
    const { top, got } = asked.job;
    const nodes = hashes.subarray(0, request.count * TREE_HASH_BYTES);
    const uncles = hashes.subarray(nodes.length);
    const isWhole = hashes.length === (request.count + uncleCount(request)) * TREE_HASH_BYTES;
    const isGood = isWhole && equalBytes(await rootAbove(nodes, request.level, request.index, uncles), top);
    if (!isGood) return session.drop(grave("lie", "the peer sent hashes that do not belong to the torrent"));
    this.#tries.set(session, 0);
    if (this.#asked.get(key) !== asked) return;
    this.#asked.delete(key);
    if (this.#waiting.length + this.#asked.size > 0) this.pump();
    else this.#timer?.cancel();
    await got(nodes);
  }

  /** A peer does not have the hashes. */
  refused(session: T, request: HashRequest): void {
    if (this.#asked.get(keyOf(request))?.of.delete(session) !== true) return;
    this.#restUntilMs.set(session, this.#clock.monotonic() + REST_MS);
    this.pump();
  }

  /** Nobody wants them any more. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#asked.clear();
    this.#timer?.cancel();
  }

  #takeBack(key: string, job: Job): void {
    this.#asked.delete(key);
    this.#waiting.push(job);
  }
}

function keyOf({ root, level, index, count, proofLevels }: HashRequest): string {
  return [toHex(root), level, index, count, proofLevels].join();
}

/**
 * What has to be asked for the leaves of a piece, and the node above them; null where they are too many for a message, or
 * only one.
 */
export function leavesOfPiece(metainfo: Metainfo, piece: number): { request: HashRequest; top: Uint8Array } | null {
  const tree = metainfo.trees?.find(({ firstPiece, pieceCount }) =>
    piece >= firstPiece && piece < firstPiece + pieceCount
  );
  if (tree === undefined) return null;
  const isOnly = tree.pieceCount === 1;
  const count = 2 ** (isOnly ? rootLevel(tree.sizeBytes) : pieceLevel(metainfo.pieceLengthBytes));
  if (count < 2 || count > MAX_HASHES) return null;
  const request = { root: tree.root, level: 0, index: (piece - tree.firstPiece) * count, count, proofLevels: 0 };
  return { request, top: isOnly ? tree.root : hashAt(metainfo.pieceHashes, piece) };
}

/** What has to be asked for the layer of a tree: rows of at most 512 nodes, each with the way to the root. */
export function requestsFor(tree: HashTree, pieceLengthBytes: number): HashRequest[] {
  const level = pieceLevel(pieceLengthBytes);
  const top = rootLevel(tree.sizeBytes);
  const count = Math.min(MAX_HASHES, 2 ** (top - level));
  const requests: HashRequest[] = [];
  for (let index = 0; index < tree.pieceCount; index += count) {
    requests.push({ root: tree.root, level, index, count, proofLevels: top - level - 1 });
  }
  return requests;
}
