/** Periodic work on peers: choking rounds, keep-alives, PEX, and dropping those of no use. */
import { CHOKE_ROUND_MS, chooseUnchoked } from "./choker.ts";
import type { PeerSession } from "./peer-session.ts";
import { PexRounds } from "./pex-rounds.ts";
import { uploadSlots } from "./upload-slots.ts";

/** How often peers are checked, ms. */
export const ROUND_MS = 1_000;

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

/** Delay of a peer's first PEX message, ms: long enough to know some peers, short enough to help newcomers. */
const PEX_FIRST_MS = 5_000;

/** Why a peer was dropped. */
export type PartReason = "silent" | "deaf" | "both_seeds" | "useless" | "makes_room";

/** What the rounds ask of the swarm. */
export interface RoundsHost {
  sessions(): Iterable<PeerSession>;
  /** Peers served at once at most; a slow up-link serves fewer (`upload-slots.ts`). */
  readonly uploadSlots: number;
  /** Whether peers receive each other's addresses. Not in private torrents (BEP 27). */
  pexEnabled(): boolean;
  seeding(): boolean;
  /** No more peers fit, and there are untried addresses. */
  crowded(): boolean;
  part(session: PeerSession, reason: PartReason): void;
}

/** The rounds of one swarm. Times are monotonic ms. */
export class PeerRounds {
  private readonly host: RoundsHost;
  private nextChokeMs: number;
  private round = 0;
  private slots: number;
  private readonly sent = new WeakMap<PeerSession, { bytes: number; sinceMs: number }>();
  private readonly pex = new PexRounds(PEX_FIRST_MS);

  constructor(host: RoundsHost, nowMs: number) {
    this.host = host;
    this.slots = host.uploadSlots;
    this.nextChokeMs = nowMs + CHOKE_ROUND_MS;
  }

  /** Call every `ROUND_MS`. */
  run(nowMs: number): void {
    if (nowMs >= this.nextChokeMs) {
      this.nextChokeMs = nowMs + CHOKE_ROUND_MS;
      this.choke(nowMs);
      this.round++;
    }
    this.makeRoom(nowMs);
    for (const session of [...this.host.sessions()]) {
      if (!session.isReady) continue;
      const reason = this.reasonToPart(session, nowMs);
      if (reason !== null) this.host.part(session, reason);
      else this.keepAlive(session, nowMs);
    }
    if (this.host.pexEnabled()) this.pex.run(() => this.host.sessions(), nowMs);
  }

  /** A session ended. */
  left(session: PeerSession): void {
    this.pex.left(session);
    if (!session.amChoking) this.fillSlots();
  }

  /** A peer's interest began or ended between rounds: a free slot is given away at once. */
  interestChanged(_session: PeerSession): void {
    this.fillSlots();
  }

  /** Gives free slots to the waiting peers, longest first. */
  private fillSlots(): void {
    let used = 0;
    const waiting: PeerSession[] = [];
    for (const session of this.host.sessions()) {
      if (!session.isReady || !session.peerInterested) continue;
      if (session.amChoking) waiting.push(session);
      else used++;
    }
    for (const session of waiting.slice(0, Math.max(0, this.slots - used))) session.setChoking(false);
  }

  private choke(nowMs: number): void {
    const sessions = [...this.host.sessions()].filter((s) => s.isReady);
    const isServing = sessions.some((s) => s.peerInterested && !s.amChoking);
    const sentBytesPerS = sessions.reduce((sum, session) => sum + session.uploadRate.rate(nowMs), 0);
    // While nobody is served, the rate says nothing.
    this.slots = isServing ? uploadSlots(this.host.uploadSlots, sentBytesPerS) : this.host.uploadSlots;
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
      { seeding: this.host.seeding(), slots: this.slots, round: this.round, nowMs },
    );
    for (const session of sessions) session.setChoking(!chosen.has(session.id));
  }

  private reasonToPart(session: PeerSession, nowMs: number): PartReason | null {
    if (nowMs - session.link!.lastReceivedMs > SILENT_MS) return "silent";
    if (session.deaf && nowMs - session.link!.lastReceivedMs > DEAF_MS) return "deaf";
    if (this.host.seeding() && session.isSeed) return "both_seeds";
    const wanted = session.amInterested || session.peerInterested;
    if (!wanted && nowMs - session.usefulMs > USELESS_MS) return "useless";
    return null;
  }

  /** One idle peer per round makes room for an address that might be better. */
  private makeRoom(nowMs: number): void {
    if (!this.host.crowded()) return;
    let idlest: PeerSession | null = null;
    for (const session of this.host.sessions()) {
      if (nowMs - session.usefulMs < IDLE_MS) continue;
      if (idlest === null || session.usefulMs < idlest.usefulMs) idlest = session;
    }
    if (idlest !== null) this.host.part(idlest, "makes_room");
  }

  private keepAlive(session: PeerSession, nowMs: number): void {
    const bytes = session.link!.counters.sentBytes;
    const last = this.sent.get(session);
    if (last === undefined || last.bytes !== bytes) {
      this.sent.set(session, { bytes, sinceMs: nowMs });
    } else if (nowMs - last.sinceMs >= KEEP_ALIVE_MS) {
      session.link!.keepAlive();
    }
  }
}
