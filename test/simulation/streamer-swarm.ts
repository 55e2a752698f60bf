/**
 * A swarm of people who watch the same film: one seeder little faster than the film's bitrate, and viewers who arrive within a minute
 * and upload as they download. Each runs the engine's own scheduler and choker. What one viewer's
 * policy costs the others shows only here.
 */
import type { Tuning } from "../../src/swarm/scheduler/tuning.ts";
import { seededRandom } from "./event-queue.ts";
import { beginLog } from "./message-log.ts";
import { EventWheel } from "./event-wheel.ts";
import { SimPlayer } from "./sim-player.ts";
import { Streamer } from "./streamer.ts";

/** In which order viewers fetch: as the engine does, or as plain clients do. */
export type FetchOrder = "engine" | "in order" | "rarest first";

export interface StreamersProfile {
  readonly viewers: number;
  readonly order: FetchOrder;
  readonly seed?: number;
  /** Media bitrate, bytes/s. Default 250,000 (2 Mbit/s). */
  readonly bytesPerS?: number;
  /** Length of the film. Default 300 s. */
  readonly filmS?: number;
  /** Viewers arrive evenly within this time. Default 60 s. */
  readonly arrivalS?: number;
  /** Up-link of the seeder in bitrates. Default 1.2. */
  readonly seederRatio?: number;
  readonly tuning?: Partial<Tuning>;
  /** Keeps a digest of all requests. Default false: it costs time. */
  readonly keepsLog?: boolean;
}

export interface StreamersResult {
  /** Opening to playing, seconds. */
  readonly startP50S: number;
  readonly startP95S: number;
  /** Viewers whose player never began. */
  readonly never: number;
  /** Stalls of all viewers, and the time that they lasted as a share of the time that viewers spent since playing began. */
  readonly stalls: number;
  readonly stalledShare: number;
  /** The viewer who stalled longest, seconds. */
  readonly worstStalledS: number;
  /** When viewers together had every piece, seconds after the first one came; null when never. */
  readonly secondCopyS: number | null;
  /** Payload that viewers got from each other. */
  readonly viewerShare: number;
  readonly duplicateShare: number;
  /** Viewers who saw the film to its end before the simulation ended. */
  readonly finished: number;
  /** Digest of all requests and cancels, in their order; null when none was kept. */
  readonly logHex: string | null;
}

/** Up-links in bitrates, with the share of viewers that have them, as in the scenarios of live distribution. */
const UPLINKS: readonly (readonly [ratio: number, share: number])[] = [[0.2, 0.2], [1, 0.4], [2, 0.3], [4, 0.1]];
const BLOCK_BYTES = 16_384;
const PIECE_BYTES = 262_144;
/** Addresses that a tracker usually returns. */
const NEIGHBOURS = 50;
/** A viewer that saw the end stays this long, as the engine's sessions and caches do. */
const LINGER_MS = 60_000;
/** The simulation ends this long after the film could have ended for the last viewer. */
const GRACE_S = 300;

/** Runs the swarm. Deterministic for its seed. */
export function simulateStreamers(profile: StreamersProfile): StreamersResult {
  const { viewers, order, seed = 1, bytesPerS = 250_000, filmS = 300, arrivalS = 60, seederRatio = 1.2 } = profile;
  const random = seededRandom(seed);
  const queue = new EventWheel();
  const log = profile.keepsLog === true ? beginLog(queue) : null;
  const totalBytes = bytesPerS * filmS;
  const pieceCount = Math.ceil(totalBytes / PIECE_BYTES);
  const shape = { pieceCount, pieceLengthBytes: PIECE_BYTES, totalBytes, blockBytes: BLOCK_BYTES };
  const tuning: Partial<Tuning> = {
    ...profile.tuning,
    random,
    ...(order === "in order" ? { inOrderMs: Number.MAX_SAFE_INTEGER, contestedRatio: Number.MAX_SAFE_INTEGER } : {}),
  };
  const members = [new Streamer(0, queue, shape, seederRatio * bytesPerS, true, tuning)];
  const players: SimPlayer[] = [];
  const inSwarm = new Uint8Array(pieceCount);
  let missing = pieceCount;
  let secondCopyS: number | null = null;

  const arrive = (id: number) => {
    const viewer = new Streamer(id, queue, shape, uplinkRatio(id, random) * bytesPerS, false, tuning);
    viewer.onPiece.push(() => {
      for (let piece = 0; missing > 0 && piece < pieceCount; piece++) {
        if (inSwarm[piece] === 1 || viewer.have[piece] === 0) continue;
        inSwarm[piece] = 1;
        if (--missing === 0) secondCopyS = queue.nowMs / 1000;
      }
    });
    for (const other of sample(members.filter(({ isGone }) => !isGone), NEIGHBOURS, random)) {
      Streamer.connect(viewer, other, 40 + 120 * random());
    }
    members.push(viewer);
    if (order === "rarest first") viewer.scheduler.setBackground({ firstPiece: 0, endPiece: pieceCount }, queue.nowMs);
    const player = new SimPlayer(viewer, {
      id: 1,
      bytesPerSecond: bytesPerS,
      stepMs: 50,
      tellsPosition: order !== "rarest first",
    });
    players.push(player);
    const look = () => {
      if (player.done) queue.after(LINGER_MS, () => viewer.leave());
      else queue.after(1000, look);
    };
    look();
    viewer.tick();
  };
  for (let i = 0; i < viewers; i++) queue.at((i * arrivalS * 1000) / viewers, () => arrive(i + 1));
  const endS = arrivalS + filmS + GRACE_S;
  for (let atS = 1; atS <= endS && !(players.length === viewers && players.every(({ done }) => done)); atS++) {
    queue.run(atS * 1000);
  }

  const starts = players.flatMap(({ startedMs }) => startedMs === null ? [] : [startedMs / 1000]).sort((a, b) => a - b);
  const stalledS = players.map((player) => player.stalledMs / 1000);
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
  const playedS = sum(players.map((player) => player.playedBytes / bytesPerS));
  const fromViewers = sum(members.map((member) => member.fromViewersBytes));
  const received = fromViewers + sum(members.map((member) => member.fromSeederBytes));
  return {
    startP50S: percentile(starts, 0.5),
    startP95S: percentile(starts, 0.95),
    never: viewers - starts.length,
    stalls: sum(players.map(({ stalls }) => stalls)),
    stalledShare: sum(stalledS) / (sum(stalledS) + playedS),
    worstStalledS: Math.max(...stalledS),
    secondCopyS,
    viewerShare: fromViewers / received,
    duplicateShare: sum(members.map((member) => member.wastedBytes)) / received,
    finished: players.filter(({ done }) => done).length,
    logHex: log?.hex ?? null,
  };
}

/** Viewers in a row of twenty have the up-links' shares exactly; which one has which is drawn. */
function uplinkRatio(id: number, random: () => number): number {
  let place = (id * 7 % 20 + random()) / 20;
  for (const [ratio, share] of UPLINKS) {
    if (place < share) return ratio;
    place -= share;
  }
  return UPLINKS.at(-1)![0];
}

function sample<T>(from: readonly T[], count: number, random: () => number): T[] {
  const rest = [...from];
  const chosen: T[] = [];
  while (chosen.length < count && rest.length > 0) {
    chosen.push(...rest.splice(Math.floor(random() * rest.length), 1));
  }
  return chosen;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
