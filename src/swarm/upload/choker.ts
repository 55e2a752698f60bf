/**
 * Decides who may download from us (BEP 3, "choking and optimistic unchoking"). Pure: the swarm asks every round and
 * carries out the decision.
 */

/** Length of a round, ms (BEP 3: ten seconds, against fibrillation). */
export const CHOKE_ROUND_MS = 10_000;

/** Rounds between two optimistic unchokes (BEP 3: thirty seconds). */
const OPTIMISTIC_ROUNDS = 3;

/** Upload slots by default: four as in BEP 3 would starve a swarm that we alone seed. */
export const DEFAULT_UPLOAD_SLOTS = 8;

/** How many of those slots rotate, so that newcomers get a chance. */
const OPTIMISTIC_SLOTS = 1;

/** While seeding, a peer keeps its slot at least this long, ms: turns shorter than this waste its pipeline. */
const SEED_TURN_MS = 30_000;

/** A peer as the choker sees it. Rates in bytes per second, times monotonic ms. */
export interface ChokeCandidate {
  readonly id: number;
  readonly interested: boolean;
  /** What it sends us. */
  readonly downloadRate: number;
  /** What we send it. */
  readonly uploadRate: number;
  readonly unchoked: boolean;
  /** When it was unchoked last; -Infinity when never. */
  readonly unchokedSinceMs: number;
  /** The peer stopped sending although we ask (BEP 3 anti-snubbing) and loses its reciprocal slot. */
  readonly snubbed: boolean;
}

/** Returns the ids to unchoke; all others are to be choked. `round` counts from 0 and sets the optimistic turn. */
export function chooseUnchoked(
  candidates: readonly ChokeCandidate[],
  options: { readonly seeding: boolean; readonly slots: number; readonly round: number; readonly nowMs: number },
): Set<number> {
  const interested = candidates.filter((c) => c.interested);
  if (interested.length <= options.slots) return new Set(interested.map((c) => c.id));
  const regular = Math.max(1, options.slots - OPTIMISTIC_SLOTS);
  const ranked = options.seeding ? rankForSeed(interested, options.nowMs) : rankByReciprocity(interested);
  const chosen = new Set(ranked.slice(0, regular).map((c) => c.id));
  for (const c of optimistic(ranked.slice(regular), options)) chosen.add(c.id);
  return chosen;
}

/** Tit for tat: the peers that send us most come first, those that snub us last. */
function rankByReciprocity(peers: readonly ChokeCandidate[]): ChokeCandidate[] {
  return [...peers].sort((a, b) =>
    Number(a.snubbed) - Number(b.snubbed) || b.downloadRate - a.downloadRate || b.uploadRate - a.uploadRate ||
    a.id - b.id
  );
}

/**
 * Round robin: peers within their turn stay, fastest first (they spread pieces best), then those that waited longest.
 */
function rankForSeed(peers: readonly ChokeCandidate[], nowMs: number): ChokeCandidate[] {
  const inTurn = (c: ChokeCandidate) => c.unchoked && nowMs - c.unchokedSinceMs < SEED_TURN_MS;
  return [...peers].sort((a, b) => {
    const turn = Number(inTurn(b)) - Number(inTurn(a));
    if (turn !== 0) return turn;
    if (inTurn(a)) return b.uploadRate - a.uploadRate || a.id - b.id;
    return a.unchokedSinceMs - b.unchokedSinceMs || a.id - b.id;
  });
}

/** Keeps the present optimistic peer for its rounds, then gives the slot to the peer that waited longest. */
function optimistic(
  rest: readonly ChokeCandidate[],
  options: { readonly round: number },
): ChokeCandidate[] {
  const renew = options.round % OPTIMISTIC_ROUNDS === 0;
  const holder = rest.filter((c) => c.unchoked).sort((a, b) => b.unchokedSinceMs - a.unchokedSinceMs)[0];
  if (!renew && holder !== undefined) return [holder];
  const waiting = rest.filter((c) => !c.unchoked);
  const pool = waiting.length > 0 ? waiting : [...rest];
  pool.sort((a, b) => a.unchokedSinceMs - b.unchokedSinceMs || a.id - b.id);
  return pool.slice(0, OPTIMISTIC_SLOTS);
}
