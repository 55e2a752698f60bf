/** Periodic work on the peers of a torrent: choking rounds, keep-alives, and dropping those of no use. */
import { MillraceError } from "../../errors.ts";
import { CHOKE_ROUND_MS, chooseUnchoked } from "../upload/choker.ts";
import type { PeerSession } from "./peer-session.ts";
import { uploadSlots } from "../upload/upload-slots.ts";

/** Silence after which we send a keep-alive, ms (BEP 3: two minutes end a connection). */
const KEEP_ALIVE_MS = 100_000;

/** Silence after which a peer is dropped, ms. */
const SILENT_MS = 180_000;

/** A peer silent for this long after its handshake did not understand ours, ms: others announce pieces at once. */
const DEAF_MS = 800;

/** A peer without payload either way for this long gives way when the swarm is full and others wait, ms. */
const IDLE_MS = 60_000;

/** When neither side has wanted anything for this long, the peer is dropped, ms. */
const USELESS_MS = 600_000;

/** The peers of one torrent (`Peers`). */
export interface RoundPeers {
  readonly sessions: Iterable<PeerSession>;
  /** We have everything. */
  readonly isSeeding: boolean;
  /** No more peers fit, and there are untried addresses. */
  readonly isCrowded: boolean;
}

/** The rounds of one swarm. Times are monotonic ms. */
export class PeerRounds {
  readonly #peers: RoundPeers;
  readonly #uploadSlots: number;
  #nextChokeMs: number;
  #round = 0;
  #slots: number;
  readonly #sent = new WeakMap<PeerSession, { bytes: number; sinceMs: number }>();

  /** `uploadSlots`: peers served at once at most; a slow up-link serves fewer (`upload-slots.ts`). */
  constructor(peers: RoundPeers, uploadSlots: number, nowMs: number) {
    this.#peers = peers;
    this.#uploadSlots = this.#slots = uploadSlots;
    this.#nextChokeMs = nowMs + CHOKE_ROUND_MS;
  }

  /** Call it every second. */
  run(nowMs: number): void {
    if (nowMs >= this.#nextChokeMs) {
      this.#nextChokeMs = nowMs + CHOKE_ROUND_MS;
      this.#choke(nowMs);
      this.#round++;
    }
    this.#makeRoom(nowMs);
    for (const session of [...this.#peers.sessions]) {
      if (!session.isReady) continue;
      if (this.#dropUseless(session, nowMs)) continue;
      session.judgeSilence(nowMs);
      this.#keepAlive(session, nowMs);
    }
  }

  /** A session ended. */
  left(session: PeerSession): void {
    if (!session.amChoking) this.fillSlots();
  }

  /** Gives free slots to the waiting peers, longest first. Call it when a peer's interest began or ended. */
  fillSlots(): void {
    let used = 0;
    const waiting: PeerSession[] = [];
    for (const session of this.#peers.sessions) {
      if (!session.isReady || !session.peerInterested) continue;
      if (session.amChoking) waiting.push(session);
      else used++;
    }
    for (const session of waiting.slice(0, Math.max(0, this.#slots - used))) session.setChoking(false);
  }

  #choke(nowMs: number): void {
    const sessions = [...this.#peers.sessions].filter((s) => s.isReady);
    const isServing = sessions.some((s) => s.peerInterested && !s.amChoking);
    const sentBytesPerS = sessions.reduce((sum, session) => sum + session.uploadRate.rate(nowMs), 0);
    // While nobody is served, the rate says nothing.
    this.#slots = isServing ? uploadSlots(this.#uploadSlots, sentBytesPerS) : this.#uploadSlots;
    const chosen = chooseUnchoked(
      sessions.map((s) => ({
        id: s.id,
        interested: s.peerInterested,
        downloadRate: s.downloadRate.rate(nowMs),
        uploadRate: s.uploadRate.rate(nowMs),
        unchoked: !s.amChoking,
        unchokedSinceMs: s.unchokedSinceMs,
        snubbed: s.snubbed(nowMs),
      })),
      { seeding: this.#peers.isSeeding, slots: this.#slots, round: this.#round, nowMs },
    );
    for (const session of sessions) session.setChoking(!chosen.has(session.id));
  }

  /** Returns whether it was dropped. */
  #dropUseless(session: PeerSession, nowMs: number): boolean {
    const silentMs = nowMs - session.link!.lastReceivedMs;
    const isWanted = session.amInterested || session.peerInterested;
    if (silentMs > SILENT_MS) session.drop(new MillraceError("closed", "the peer was silent"));
    else if (session.deaf && silentMs > DEAF_MS) session.drop(new MillraceError("closed", "the peer was deaf"));
    else if (this.#peers.isSeeding && session.isSeed) session.part("both_seeds");
    else if (!isWanted && nowMs - session.usefulMs > USELESS_MS) session.part("useless");
    else return false;
    return true;
  }

  /** One idle peer per round makes room for an address that might be better. */
  #makeRoom(nowMs: number): void {
    if (!this.#peers.isCrowded) return;
    let idlest: PeerSession | null = null;
    for (const session of this.#peers.sessions) {
      if (nowMs - session.usefulMs < IDLE_MS) continue;
      if (idlest === null || session.usefulMs < idlest.usefulMs) idlest = session;
    }
    idlest?.part("makes_room");
  }

  #keepAlive(session: PeerSession, nowMs: number): void {
    const bytes = session.link!.counters.sentBytes;
    const last = this.#sent.get(session);
    if (last === undefined || last.bytes !== bytes) {
      this.#sent.set(session, { bytes, sinceMs: nowMs });
    } else if (nowMs - last.sinceMs >= KEEP_ALIVE_MS) {
      session.link!.keepAlive();
    }
  }
}
