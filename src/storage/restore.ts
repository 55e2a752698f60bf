/** Finds out, when a torrent is opened, which pieces the disk holds, without hashing those known to be good. */
import type { Bitfield } from "../bytes/bitfield.ts";
import { forEachLimited } from "../bytes/limited.ts";
import { pieceBytes } from "../bytes/piece-shape.ts";
import type { Clock } from "../ports.ts";
import type { DiskStore } from "./disk-store.ts";

/** How long `open()` waits for hashing; the rest continues in the background and is reported by `onFound`. */
const OPEN_VERIFY_MS = 1_500;

/** Files whose facts are read at once. */
const FACTS_CONCURRENCY = 16;

/** Pieces read and hashed at once. */
const VERIFY_CONCURRENCY = 4;

const UNKNOWN = 0;
const GOOD = 1;
const SUSPECT = 2;
const GONE = 3;

/**
 * Sets the bits of those `claimed` pieces that the files can hold. Files changed after `savedMs` (by the file system's
 * clock) may hold something else, so their pieces are hashed first. -Infinity hashes everything.
 */
export async function restore(store: DiskStore, claimed: Bitfield, savedMs: number, clock: Clock): Promise<void> {
  const { layout, medium } = store;
  const { placement } = medium;
  const states = new Uint8Array(layout.pieceCount);
  const claimedUnits = function* (): Generator<number> {
    for (let unit = 0; unit < placement.unitCount; unit++) {
      const { first, end } = placement.piecesOf(unit);
      for (let piece = first; piece < end; piece++) {
        if (!claimed.has(piece)) continue;
        yield unit;
        break;
      }
    }
  };
  await forEachLimited(claimedUnits(), FACTS_CONCURRENCY, async (unit) => {
    const facts = await medium.facts(unit);
    const { first, end } = placement.piecesOf(unit);
    for (let piece = first; piece < end; piece++) {
      if (!claimed.has(piece)) continue;
      let state = facts === null || facts.modifiedMs <= savedMs ? GOOD : SUSPECT;
      if (!placement.isPadding(unit) && (facts?.sizeBytes ?? 0) < endInUnit(store, piece, unit)) state = GONE;
      states[piece] = Math.max(states[piece] ?? UNKNOWN, state);
    }
  });
  const suspects: number[] = [];
  states.forEach((state, piece) => {
    if (state === GOOD) store.adoptFound(piece, { hashed: false, announce: false });
    if (state === SUSPECT) suspects.push(piece);
  });
  if (suspects.length === 0) return;

  let opened = false;
  let done = 0;
  store.checking = { done, total: suspects.length };
  const hashing = forEachLimited(suspects, VERIFY_CONCURRENCY, async (piece) => {
    if (!store.closed && !store.have.has(piece) && await store.verifyOnDisk(piece)) {
      store.adoptFound(piece, { hashed: true, announce: opened });
    }
    store.checking = { done: ++done, total: suspects.length };
  }).finally(() => store.checking = null);
  await new Promise<void>((resolve) => {
    const timer = clock.setTimeout(resolve, OPEN_VERIFY_MS);
    void hashing.finally(() => {
      timer.cancel();
      resolve();
    });
  });
  opened = true;
}

/** Offset in the unit just after the piece's last byte there. */
function endInUnit(store: DiskStore, piece: number, unit: number): number {
  const offset = piece * store.layout.pieceLengthBytes;
  const part = store.medium.placement.locate(offset, pieceBytes(store.layout, piece)).find((candidate) =>
    candidate.unit === unit
  );
  return part === undefined ? 0 : part.position + part.length;
}
