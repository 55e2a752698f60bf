/** The scenarios of the scheduler's simulation. Deterministic: the same figures on every machine and runtime. */
import { seededRandom } from "./event-queue.ts";
import type { PeerProfile } from "./sim-peer.ts";
import { SimPlayer } from "./sim-player.ts";
import { SimSwarm } from "./sim-swarm.ts";
import type { Tuning } from "../../src/swarm/scheduler/tuning.ts";

/** Figures of one run; null where a figure makes no sense. */
export interface Result {
  readonly name: string;
  /** Open to first MiB (or prebuffer), and what the links allow at best. */
  readonly startMs: number | null;
  readonly limitMs: number | null;
  readonly seekP50Ms: number | null;
  readonly seekP95Ms: number | null;
  readonly stalls: number;
  readonly stalledMs: number;
  readonly duplicatePercent: number;
  /** Received bytes ÷ (rate of all uplinks × time). */
  readonly utilisation: number | null;
  readonly swarm: SimSwarm;
  readonly players: readonly SimPlayer[];
}

const MiB = 1_048_576;
const MBIT = 125_000;

const repeat = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

function percentile(values: readonly number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!;
}

function figures(
  name: string,
  swarm: SimSwarm,
  players: readonly SimPlayer[],
  limitMs: number | null,
  startMs: number | null,
  utilisation: number | null = null,
): Result {
  const seeks = players.flatMap((player) => player.seekMs);
  return {
    name,
    startMs,
    limitMs,
    seekP50Ms: percentile(seeks, 0.5),
    seekP95Ms: percentile(seeks, 0.95),
    stalls: players.reduce((sum, player) => sum + player.stalls, 0),
    stalledMs: players.reduce((sum, player) => sum + player.stalledMs, 0),
    duplicatePercent: swarm.duplicatePercent,
    utilisation,
    swarm,
    players,
  };
}

/** Peers are connected and unchoked this long before the player opens, unless a scenario is about a cold start. */
const WARM_MS = 500;

function seeks(swarm: SimSwarm, player: SimPlayer, count: number, everyMs: number, random: () => number): void {
  for (let i = 0; i < count; i++) {
    player.seek(Math.floor(random() * (swarm.totalBytes - 8 * MiB)));
    swarm.queue.run(swarm.nowMs + 30_000, () => player.firstByteMs !== null);
    swarm.queue.run(swarm.nowMs + everyMs);
  }
}

/** Four seeders of 20 Mbit/s at 50 ms: start, then 12 random seeks. `bitrate` 5 Mbit/s. */
export function fourSeeders(tuning: Partial<Tuning> = {}): Result {
  const swarm = new SimSwarm({
    totalBytes: 700 * MiB,
    pieceBytes: MiB,
    peers: repeat(4, () => ({ rate: 20 * MBIT, rttMs: 50 })),
    tuning,
  });
  swarm.queue.run(WARM_MS);
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: 5 * MBIT });
  // Cold: interest, unchoke, request, data are two round trips.
  swarm.queue.run(20_000, () => player.startedMs !== null);
  const start = player.startedMs;
  swarm.queue.run(swarm.nowMs + 2000);
  seeks(swarm, player, 12, 1500, seededRandom(7));
  return figures("4 × 20 Mbit/s, 50 ms", swarm, [player], 100 + (MiB * 1000) / (80 * MBIT), start);
}

/** Thirty slow peers, 0.3–0.7 Mbit/s each, 40–160 ms. Aggregate 15 Mbit/s, bitrate 6. */
export function slowPeers(tuning: Partial<Tuning> = {}): Result {
  const random = seededRandom(3);
  const peers = repeat(30, () => ({ rate: (0.3 + 0.4 * random()) * MBIT, rttMs: 40 + 120 * random() }));
  const swarm = new SimSwarm({ totalBytes: 200 * MiB, pieceBytes: MiB / 2, peers, tuning });
  swarm.queue.run(WARM_MS);
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: 6 * MBIT });
  swarm.queue.run(60_000, () => player.startedMs !== null);
  const start = player.startedMs;
  swarm.queue.run(swarm.nowMs + 20_000);
  seeks(swarm, player, 8, 5000, seededRandom(8));
  const total = peers.reduce((sum, peer) => sum + peer.rate, 0);
  return figures("30 slow peers", swarm, [player], 200 + (MiB * 1000) / total, start);
}

/** Twelve peers of 2 KB/s: a block takes 8 s, and a piece has more blocks than there are peers. */
export function crawl(tuning: Partial<Tuning> = {}, seed = 1): Result {
  const random = seededRandom(seed);
  const peers = repeat(12, (): PeerProfile => ({
    rate: 2_000,
    rttMs: 20 + 100 * random(),
    joinAtMs: 300 * random(),
    sendBufferBytes: 10_240,
  }));
  const pieceBytes = MiB / 4;
  const swarm = new SimSwarm({ seed, totalBytes: 4 * pieceBytes, pieceBytes, peers, tuning });
  swarm.queue.run(WARM_MS);
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: MBIT, prebufferBytes: 65_536 });
  swarm.queue.run(120_000, () => player.startedMs !== null);
  return figures("12 peers of 2 KB/s", swarm, [player], 120 + (pieceBytes * 1000) / 24_000, player.startedMs);
}

/** Four seeders with 1.3 × the bitrate between them; one freezes at 20 s for good. */
export function freeze(tuning: Partial<Tuning> = {}, seed = 1): Result {
  const bitrate = 8 * MBIT;
  const rate = (1.3 * bitrate) / 4;
  const peers = repeat(4, (i): PeerProfile => i === 1 ? { rate, rttMs: 50, freezeAtMs: 20_000 } : { rate, rttMs: 50 });
  const swarm = new SimSwarm({ seed, totalBytes: 60 * bitrate, pieceBytes: MiB / 2, peers, tuning });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: bitrate, prebufferBytes: 2 * bitrate });
  swarm.queue.run(200_000, () => player.done);
  return figures("1.3 × bitrate, freeze", swarm, [player], 100 + 2000 / 1.3, player.startedMs);
}

/** The same behind links that deliver in lumps and swallow megabytes: nothing asked for can be called back. */
export function bloatedFreeze(tuning: Partial<Tuning> = {}, seed = 1): Result {
  const bitrate = 8 * MBIT;
  const rate = (1.3 * bitrate) / 4;
  const link: PeerProfile = { rate, rttMs: 50, sendBufferBytes: 4 * MiB, lumpBytes: 64 * 1024 };
  const peers = repeat(4, (i): PeerProfile => i === 1 ? { ...link, freezeAtMs: 8000 } : link);
  const swarm = new SimSwarm({ seed, totalBytes: 60 * bitrate, pieceBytes: MiB, peers, tuning });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: bitrate, prebufferBytes: 2 * bitrate });
  swarm.queue.run(200_000, () => player.done);
  return figures("the same, bloated links", swarm, [player], 100 + 2000 / 1.3, player.startedMs);
}

/** One fast peer on loopback copies 1 GiB through a reader. */
export function fastPeer(tuning: Partial<Tuning> = {}): Result {
  const rate = 1e9;
  const swarm = new SimSwarm({
    totalBytes: 1024 * MiB,
    pieceBytes: MiB,
    peers: [{ rate, rttMs: 0.4, requestQueueLimit: 500, sendBufferBytes: 4 * MiB }],
    downlink: 2e9,
    tuning,
  });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: Number.POSITIVE_INFINITY });
  swarm.queue.run(30_000, () => player.position >= swarm.totalBytes);
  const utilisation = swarm.totalBytes / ((rate * swarm.nowMs) / 1000);
  return figures("1 fast peer, 1 GiB", swarm, [player], 1, player.startedMs, utilisation);
}

/** A copy at full speed over long, uneven routes, with a host that looks at its sockets every 10 ms only. */
export function longRoutes(tuning: Partial<Tuning> = {}): Result {
  const peers = [40, 100, 200, 300].map((rttMs): PeerProfile => ({ rate: 20 * MBIT, rttMs }));
  const swarm = new SimSwarm({ totalBytes: 200 * MiB, pieceBytes: MiB, peers, hostQuantumMs: 10, tuning });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: Number.POSITIVE_INFINITY });
  swarm.queue.run(200_000, () => player.position >= swarm.totalBytes);
  const utilisation = swarm.totalBytes / ((80 * MBIT * swarm.nowMs) / 1000);
  return figures("long routes, copy", swarm, [player], 120 + (MiB * 1000) / (60 * MBIT), player.startedMs, utilisation);
}

/** A copy at full speed from one seeder that answers every 500 ms only, as Transmission 3.00 does. */
export function burstyPeer(tuning: Partial<Tuning> = {}): Result {
  const rate = 5_000_000;
  const peers = [{ rate, rttMs: 1, periodMs: 500, requestQueueLimit: 512 }];
  const swarm = new SimSwarm({ totalBytes: 64 * MiB, pieceBytes: MiB, peers, tuning });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: Number.POSITIVE_INFINITY });
  swarm.queue.run(200_000, () => player.position >= swarm.totalBytes);
  const utilisation = swarm.totalBytes / ((rate * swarm.nowMs) / 1000);
  return figures("answers every 500 ms", swarm, [player], 500 + (MiB * 1000) / rate, player.startedMs, utilisation);
}

/** Three players in different places and a copy at full speed share 60 Mbit/s; the players need 36. */
export function manyReaders(tuning: Partial<Tuning> = {}): Result {
  const swarm = new SimSwarm({
    totalBytes: 700 * MiB,
    pieceBytes: MiB,
    peers: repeat(6, () => ({ rate: 10 * MBIT, rttMs: 60 })),
    tuning,
  });
  swarm.queue.run(WARM_MS);
  const players = repeat(3, (i) => new SimPlayer(swarm, { id: i, start: i * 200 * MiB, bytesPerSecond: 12 * MBIT }));
  const copy = new SimPlayer(swarm, { id: 9, start: 100 * MiB, bytesPerSecond: Number.POSITIVE_INFINITY });
  swarm.queue.run(60_000);
  const start = Math.max(...players.map((player) => player.startedMs ?? Number.POSITIVE_INFINITY));
  copy.close();
  const result = figures("3 players and a copy", swarm, players, 110 + (4 * MiB * 1000) / (60 * MBIT), start);
  return result;
}

/** Readers far apart, in a swarm that is slower than what they want: the bytes that each got in 20 s. */
export function lateReaders(pieceBytes: number, bytesPerSecond: number, tuning: Partial<Tuning> = {}): number[] {
  const peers = repeat(2, () => ({ rate: 300_000, rttMs: 50 }));
  const swarm = new SimSwarm({ totalBytes: 400 * MiB, pieceBytes, peers, tuning });
  swarm.queue.run(WARM_MS);
  const players = repeat(4, (id) => new SimPlayer(swarm, { id, start: id * 100 * MiB, bytesPerSecond }));
  swarm.queue.run(swarm.nowMs + 20_000);
  return players.map(({ position }, id) => position - id * 100 * MiB);
}

/** Good peers among liars, stalling, choking, rejecting, corrupting and leaving ones. */
export function adversaries(tuning: Partial<Tuning> = {}, seed = 1): Result {
  const good = repeat(3, (): PeerProfile => ({ rate: 6 * MBIT, rttMs: 60 }));
  const bad: PeerProfile[] = [
    { rate: 10 * MBIT, rttMs: 30, lying: true },
    { rate: 10 * MBIT, rttMs: 30, lying: true, fast: false },
    { rate: 8 * MBIT, rttMs: 40, choking: { onMs: 3000, offMs: 4000 } },
    { rate: 8 * MBIT, rttMs: 40, choking: { onMs: 1000, offMs: 2000 }, fast: false },
    { rate: 8 * MBIT, rttMs: 40, rejects: 0.5 },
    { rate: 8 * MBIT, rttMs: 40, rejects: 1 },
    { rate: 8 * MBIT, rttMs: 40, corrupts: 0.05 },
    { rate: 8 * MBIT, rttMs: 40, leaveAtMs: 5000 },
    { rate: 8 * MBIT, rttMs: 40, freezeAtMs: 4000, thawAtMs: 12_000 },
    { rate: 0.05 * MBIT, rttMs: 300 },
  ];
  const swarm = new SimSwarm({ seed, totalBytes: 80 * MiB, pieceBytes: MiB / 2, peers: [...bad, ...good], tuning });
  swarm.queue.run(WARM_MS);
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: 12 * MBIT });
  swarm.queue.run(120_000, () => player.done);
  return figures("adversaries", swarm, [player], 110 + (MiB * 1000) / (18 * MBIT), player.startedMs);
}

/** libtorrent reads from disk in several threads: blocks requested together leave in any order. */
const DISK_MS = 10;

/** Figures of many runs in bad swarms. */
export interface BadSwarmResult {
  /** From opening to half a second of media, and the least that the links allow, at the 95th percentile. */
  readonly startP95Ms: number;
  readonly startLimitP95Ms: number;
  readonly seekP50Ms: number;
  readonly seekP95Ms: number;
  readonly seekLimitP95Ms: number;
  /** Share of the playing time that was stalled, percent. */
  readonly stalledPercent: number;
  readonly bans: number;
  /** Digests of all that the schedulers decided, in order of seeds. */
  readonly logHexes: readonly string[];
}

/**
 * Eight peers of 1 to 4 Mbit/s and 80 to 250 ms: three never unchoke, one forges every second block, the others bring
 * 1.3 × the bitrate of 8 Mbit/s. A player starts, plays for 12 s, then seeks ten times, a second apart. As in
 * `scripts/bench/bad-swarm.ts`, but from connected peers on.
 */
export function badSwarms(runs: number, tuning: Partial<Tuning> = {}): BadSwarmResult {
  const bitrate = 8 * MBIT;
  const pieceBytes = MiB / 4;
  const startBytes = bitrate / 2;
  const lists = { start: [] as number[], startLimit: [] as number[], seek: [] as number[], seekLimit: [] as number[] };
  let [stalledMs, playedMs, bans] = [0, 0, 0];
  const logHexes: string[] = [];
  for (let seed = 1; seed <= runs; seed++) {
    const random = seededRandom(seed);
    const draw = (): PeerProfile => ({ rate: (1 + 3 * random()) * MBIT, rttMs: 80 + 170 * random() });
    const drawn = repeat(4, draw);
    const factor = (1.3 * bitrate) / drawn.reduce((sum, { rate }) => sum + rate, 0);
    const good = drawn.map((peer) => ({ ...peer, rate: peer.rate * factor, diskMs: DISK_MS }));
    const deaf = repeat(3, (i): PeerProfile => ({ ...draw(), deaf: true, fast: i !== 1 }));
    const peers = [...good, ...deaf, { ...draw(), corrupts: 0.5 }];
    const limitMs = (bytes: number, roundTrips: number): number => {
      let ms = 0;
      const by = (peer: PeerProfile) => (peer.rate * Math.max(0, ms - roundTrips * peer.rttMs)) / 1000;
      while (good.reduce((sum, peer) => sum + by(peer), 0) < bytes) ms++;
      return ms;
    };
    const swarm = new SimSwarm({ seed, totalBytes: 60 * bitrate, pieceBytes, peers, tuning });
    const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: bitrate, prebufferBytes: startBytes });
    swarm.queue.run(60_000, () => player.startedMs !== null);
    lists.start.push(player.startedMs ?? 60_000);
    // Interest and unchoke, request and data.
    lists.startLimit.push(limitMs(startBytes, 2));
    swarm.queue.run(swarm.nowMs + 12_000);
    stalledMs += player.stalledMs;
    playedMs += 12_000;
    const places = repeat(10, (i) => 0.5 + 0.048 * i).sort(() => random() - 0.5);
    for (const place of places) {
      const before = player.seekMs.length;
      const beganMs = swarm.nowMs;
      player.seek(Math.floor(place * swarm.totalBytes));
      swarm.queue.run(beganMs + 30_000, () => player.seekMs.length > before);
      swarm.queue.run(Math.max(swarm.nowMs, beganMs + 1000));
      lists.seekLimit.push(limitMs(pieceBytes, 1));
    }
    lists.seek.push(...player.seekMs);
    bans += swarm.banned.length;
    logHexes.push(swarm.log.hex);
  }
  const p95 = (list: readonly number[]) => percentile(list, 0.95)!;
  return {
    logHexes,
    startP95Ms: p95(lists.start),
    startLimitP95Ms: p95(lists.startLimit),
    seekP50Ms: percentile(lists.seek, 0.5)!,
    seekP95Ms: p95(lists.seek),
    seekLimitP95Ms: p95(lists.seekLimit),
    stalledPercent: (100 * stalledMs) / playedMs,
    bans,
  };
}

/** Nobody reads: everything is fetched from 12 peers that have parts, and a slow seed. */
export function background(tuning: Partial<Tuning> = {}): Result {
  const peers: PeerProfile[] = [
    ...repeat(12, (i): PeerProfile => ({ rate: 5 * MBIT, rttMs: 60, share: 0.3 + 0.05 * i })),
    { rate: 2 * MBIT, rttMs: 100 },
  ];
  const swarm = new SimSwarm({ totalBytes: 256 * MiB, pieceBytes: MiB / 2, peers, tuning });
  swarm.queue.run(WARM_MS);
  const began = swarm.nowMs;
  swarm.scheduler.setBackground({ firstPiece: 0, endPiece: swarm.pieceCount }, swarm.nowMs);
  swarm.tick();
  swarm.queue.run(200_000, () => swarm.haveCount === swarm.pieceCount);
  const total = peers.reduce((sum, peer) => sum + peer.rate, 0);
  const utilisation = swarm.totalBytes / ((total * (swarm.nowMs - began)) / 1000);
  return figures("background, 13 peers", swarm, [], null, null, utilisation);
}

/** All of them, for the table. */
export function all(tuning: Partial<Tuning> = {}): Result[] {
  return [
    fourSeeders(tuning),
    slowPeers(tuning),
    freeze(tuning),
    bloatedFreeze(tuning),
    fastPeer(tuning),
    longRoutes(tuning),
    burstyPeer(tuning),
    manyReaders(tuning),
    crawl(tuning),
    adversaries(tuning),
    background(tuning),
  ];
}
