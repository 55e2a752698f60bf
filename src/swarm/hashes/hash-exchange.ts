/** The messages between a torrent's swarm and its peers about hash trees (BEP 52). */
import { Allowance } from "../../bytes/allowance.ts";
import type { Metainfo } from "../../metainfo/types.ts";
import type { Clock, Digest } from "../../ports.ts";
import { HashMessageId, type HashRequest } from "../../wire/hash-messages.ts";
import { HashServer } from "./hash-server.ts";
import { type HashSource, LayerFetch, leavesOfPiece } from "./layer-fetch.ts";
import { pieceBytes } from "../data/layout.ts";
import type { Transfer } from "../data/transfer.ts";

/**
 * Bytes of pieces hashed for peers that ask for leaves, per second and at once: they do so for pieces that failed, which is
 * rare. The rest is refused.
 */
const LEAVES_PER_S = 4 * 1024 * 1024;
const LEAVES_BURST = 64 * 1024 * 1024;

/** Requests of one peer that are worked on: each may cost the reading and hashing of a piece. More are refused. */
const MAX_UNDER_WAY = 16;

/** The hash trees of one torrent, asked for and served. */
export class HashExchange<T extends HashSource> {
  readonly #fetch: LayerFetch<T>;
  readonly #underWay = new WeakMap<T, number>();
  #server: HashServer | null = null;
  readonly #nowMs: () => number;
  readonly #leaves: Allowance;
  /** Answers are made one after the other. */
  #answering: Promise<void> = Promise.resolve();

  constructor(clock: Clock, peers: { readonly sessions: Iterable<T> }) {
    this.#fetch = new LayerFetch(clock, peers);
    this.#nowMs = () => clock.monotonic();
    this.#leaves = new Allowance(LEAVES_PER_S, LEAVES_BURST, clock.monotonic());
  }

  /** Calls `done` with `metainfo` and the hashes of all its pieces: at once, or when peers have sent what is missing. */
  complete(metainfo: Metainfo, done: (whole: Metainfo) => void): void {
    this.#fetch.complete(metainfo, done);
  }

  /** SHA-256 of each block of a piece, proven; null when no peer sends them in time. */
  async leaves(metainfo: Metainfo, piece: number): Promise<Uint8Array | null> {
    const asked = metainfo.shortPieces === undefined ? null : leavesOfPiece(metainfo, piece);
    return asked === null ? null : await this.#fetch.row(asked.request, asked.top);
  }

  /** Answers requests from now on. */
  serve({ metainfo, bank }: Pick<Transfer, "metainfo" | "bank">, sha256: Digest): void {
    if (metainfo.trees === undefined) return;
    this.#server = new HashServer(metainfo, bank, (piece) => pieceBytes(metainfo, piece), sha256);
  }

  /** A peer is ready, or has left. */
  pump(): void {
    this.#fetch.pump();
  }

  /** A peer asks for hashes. */
  requested(session: T, request: HashRequest): void {
    const count = this.#underWay.get(session) ?? 0;
    const server = this.#server;
    const refuse = () => session.link?.sendHash(HashMessageId.reject, request);
    if (server === null || count >= MAX_UNDER_WAY) return refuse();
    const hashedBytes = server.hashedBytes(request);
    if (hashedBytes > 0 && !this.#leaves.take(hashedBytes, this.#nowMs)) return refuse();
    this.#underWay.set(session, count + 1);
    this.#answering = this.#answering.then(async () => {
      const hashes = session.isReady ? await server.answer(request).catch(() => null) : null;
      this.#underWay.set(session, this.#underWay.get(session)! - 1);
      if (hashes === null) refuse();
      else session.link?.sendHash(HashMessageId.hashes, request, hashes);
    });
  }

  /** A peer sent hashes. */
  arrived(session: T, request: HashRequest, hashes: Uint8Array): void {
    void this.#fetch.arrived(session, request, hashes);
  }

  /** A peer does not have what we asked for. */
  refused(session: T, request: HashRequest): void {
    this.#fetch.refused(session, request);
  }

  close(): void {
    this.#fetch.close();
    this.#server = null;
  }
}
