/** Turns the blocks of one run into access units with times. */
import type { ByteLender, ByteSource } from "../../../bytes/source.ts";
import { HeldParts } from "../../source/held-parts.ts";
import type { CountUnits, FaultLedger } from "../../model/faults.ts";
import type { RunSample } from "../../model/timeline.ts";
import type { Anchor } from "./anchors.ts";
import { splitFrames } from "./block.ts";
import { ClusterWalk, type ClusterWalkOptions, type WalkedBlock } from "./cluster-walk.ts";
import { DecodeTimes } from "./decode-times.ts";
import { MAX_HEADER_BYTES } from "./ebml.ts";
import { wholeFrame } from "./encodings.ts";
import { type FrameGrid, onGrid } from "./frame-grid.ts";
import type { MatroskaTrack } from "./tracks.ts";

/** Facts of the whole file needed to read a run. */
export interface RunFacts {
  readonly tracks: readonly MatroskaTrack[];
  readonly timestampScaleNs: number;
  /** Index of the track whose keyframes start runs. */
  readonly mainTrack: number;
  /** Reordering depth of each track. */
  readonly depths: readonly number[];
  /** Added to all presentation times, and the lag of decoding times of tracks that reorder, 90 kHz. */
  readonly shift90k: number;
  /** The regular times of the main track's pictures; null: as the file says. */
  readonly grid: FrameGrid | null;
  /** Where another film begins in the same file; null if none follows. */
  readonly endsAt: number | null;
  /** Where it is counted what cannot be read. */
  readonly faults: FaultLedger;
}

/** Most access units per batch: small ones in laces take far more memory as objects than in the file. */
const MAX_BATCH = 512;
/** The same for what is made of compressed frames, bytes: it can be far more than was read. */
const MAX_MADE_BYTES = 1024 * 1024;
/** Largest subtitle that is unpacked, bytes: decoders of discs hold two pictures of full HD in 4 MiB, packed in 1. */
const MAX_SUBTITLE_BYTES = 2 * 1024 * 1024;
/** Blocks beyond this time are damage, ns: 1000 h. */
const MAX_TIME_NS = 3.6e15;

/** Decides for each block whether it comes before, in or after the run. Blocks are held while that is undecided. */
class Cut {
  readonly #anchor: Anchor;
  readonly #mainNumber: number;
  #cluster = -1;
  held: WalkedBlock[] = [];

  constructor(anchor: Anchor, mainNumber: number) {
    this.#anchor = anchor;
    this.#mainNumber = mainNumber;
  }

  /**
   * "before" the cut; "cut": the cut is here, after the held blocks; "held": undecided, kept in `held`; "cluster": the
   * cut was where the held blocks begin, or at this block when none is held.
   */
  judge(block: WalkedBlock): "before" | "cut" | "held" | "cluster" {
    const { position, blockAt, searchBytes } = this.#anchor;
    if (block.clusterAt < position) return "before";
    if (this.#cluster < 0) this.#cluster = block.clusterAt;
    const isAccessPoint = block.keyframe && block.track === this.#mainNumber;
    if (blockAt !== null && this.#cluster === position) {
      if (block.clusterAt !== position || block.blockAt >= blockAt) return "cut";
      // Some muxers count from elsewhere: what points into a random access point means it.
      return isAccessPoint && block.blockAt + block.elementBytes > blockAt ? "cut" : "before";
    }
    if (isAccessPoint) return "cut";
    if (searchBytes === Infinity) return "before";
    if (block.clusterAt !== this.#cluster || block.blockAt >= searchBytes) return "cluster";
    // They wait for longer than the read that holds them is lent.
    const bytes = block.bytes.slice(block.body, block.end);
    this.held.push({ ...block, beside: block.beside?.slice() ?? null, bytes, body: 0, end: bytes.length });
    return "held";
  }
}

/** Collects access units of one run. */
class Collector {
  readonly #facts: RunFacts;
  readonly #byNumber = new Map<number, number>();
  readonly #times: readonly (DecodeTimes | null)[];
  readonly #held: HeldParts;
  out: RunSample[] = [];
  /** Bytes that were made of compressed frames since `take`. */
  #madeBytes = 0;
  readonly #count: CountUnits;

  constructor(facts: RunFacts, wanted: ReadonlySet<number>, lender: ByteLender | null, count: CountUnits) {
    this.#facts = facts;
    this.#count = count;
    this.#held = new HeldParts(lender);
    facts.tracks.forEach(({ track }, index) => {
      if (wanted.has(index) && !this.#byNumber.has(track.id)) this.#byNumber.set(track.id, index);
    });
    // Audio goes through it too, with depth 0: it makes the times of damaged files increase.
    this.#times = facts.tracks.map((_, i) =>
      wanted.has(i) ? new DecodeTimes(facts.depths[i]!, facts.depths[i]! > 0 ? facts.shift90k : 0) : null
    );
  }

  add(block: WalkedBlock): void {
    const index = this.#byNumber.get(block.track);
    if (index === undefined) return;
    const frames = splitFrames(block.bytes, block.body, block.end, block.flags);
    const unread = () => this.#facts.faults.unread(block.clusterAt + block.blockAt);
    if (frames === null) return unread();
    const entry = this.#facts.tracks[index]!;
    const { laceDurationNs, track } = entry;
    const { timestampScaleNs, shift90k, grid, mainTrack } = this.#facts;
    for (let i = 0; i < frames.length; i++) {
      const packed = frames[i]!;
      const data = wholeFrame(entry, packed, track.kind === "subtitle" ? MAX_SUBTITLE_BYTES : Infinity);
      if (data === null) unread();
      if (data === null || data.length === 0) continue;
      if (entry.isDeflated) this.#madeBytes += data.length;
      const told = block.time * timestampScaleNs + i * (laceDurationNs ?? 0);
      if (!(told <= MAX_TIME_NS)) return unread();
      this.#count(index, 1);
      const ns = grid !== null && index === mainTrack ? onGrid(grid, told) : told;
      const pts90k = Math.round(ns * 9e-5) + shift90k;
      const keyframe = track.kind !== "video" || block.keyframe;
      const more = track.kind === "subtitle"
        ? {
          ...block.duration === null ? {} : { shown90k: Math.round(block.duration * timestampScaleNs * 9e-5) },
          ...block.beside === null ? {} : { beside: block.beside.slice() },
          ...entry.isDeflated ? { packedBytes: packed.length } : {},
        }
        : {};
      this.#times[index]!.push({ track: index, pts90k, dts90k: pts90k, keyframe, data, ...more }, this.out);
    }
  }

  /**
   * The finished access units. The bytes of waiting units are kept; those of these can be given back once they were
   * used.
   */
  take(): RunSample[] {
    this.#madeBytes = 0;
    for (const times of this.#times) times?.keep(this.#held);
    const batch = this.out;
    this.out = [];
    return batch;
  }

  /** `take` is due. */
  get isFull(): boolean {
    return this.out.length >= MAX_BATCH || this.#madeBytes >= MAX_MADE_BYTES;
  }

  /** The user of the units that `take` returned holds them, or is done with them. */
  dropTaken(): void {
    for (const times of this.#times) times?.dropSettled(this.#held);
  }

  flush(): void {
    for (const times of this.#times) times?.flush(this.out);
  }
}

/** A cluster's header and that of the block at which a run ends, bytes. */
const HEADERS_BYTES = 2 * MAX_HEADER_BYTES;
/** This much of a cluster is read when its first random access point is to be found, bytes. */
const SEARCHED_BYTES = 64 * 1024;

/** Says where the run ends before the block there, which may be large, has arrived. */
function endOf(end: Anchor | null, endsAt: number | null): Pick<ClusterWalkOptions, "stop" | "untilBytes"> {
  if (end === null) return endsAt === null ? {} : { stop: (clusterAt) => clusterAt >= endsAt, untilBytes: endsAt };
  const { position, blockAt: target } = end;
  if (target === null) return { untilBytes: position + SEARCHED_BYTES };
  return {
    stop: (clusterAt, blockAt) => clusterAt === position && blockAt >= target,
    untilBytes: position + target + HEADERS_BYTES,
  };
}

/**
 * The access units between two anchors (`end` null: to the end of the file), in batches as bytes arrive. `lender` and
 * `held` as of `StreamedTimeline.readRun`.
 */
export async function* readRun(
  facts: RunFacts,
  { start, end }: { readonly start: Anchor; readonly end: Anchor | null },
  wanted: ReadonlySet<number>,
  source: ByteSource,
  signal: AbortSignal,
  lender?: ByteLender,
  held: CountUnits = () => {},
): AsyncGenerator<readonly RunSample[]> {
  const onTooLarge = (at: number) => facts.faults.unread(at);
  const walk = new ClusterWalk(source, start.position, signal, { ...endOf(end, facts.endsAt), lender, onTooLarge });
  try {
    if (!await walk.locate()) return;
    yield* collect(facts, walk, new Collector(facts, wanted, lender ?? null, held), start, end);
  } finally {
    walk.close();
  }
}

async function* collect(
  facts: RunFacts,
  walk: ClusterWalk,
  collector: Collector,
  start: Anchor,
  end: Anchor | null,
): AsyncGenerator<readonly RunSample[]> {
  const mainNumber = facts.tracks[facts.mainTrack]!.track.id;
  const opening = new Cut(start, mainNumber);
  const closing = end === null ? null : new Cut(end, mainNumber);
  let open = false;
  let over = false;
  const accept = (block: WalkedBlock) => {
    const verdict = closing === null ? "before" : closing.judge(block);
    if (verdict === "cut") closing!.held.forEach((held) => collector.add(held));
    if (verdict === "cut" || verdict === "cluster") over = true;
    else if (verdict === "before") collector.add(block);
  };
  const offer = (block: WalkedBlock) => {
    if (open) return accept(block);
    // The next run's keyframe search met this block too: nothing lies between the two cuts.
    if (end?.searchBytes === Infinity && block.clusterAt >= end.position) {
      over = true;
      return;
    }
    const verdict = opening.judge(block);
    if (verdict === "before" || verdict === "held") return;
    open = true;
    if (verdict === "cluster") opening.held.forEach(accept);
    opening.held = [];
    if (!over) accept(block);
  };
  while (!over) {
    const block = walk.next();
    if (block === null) break;
    if (block === "turn") {
      await walk.turn();
      continue;
    }
    if (block === "more" || block === "search") {
      const batch = collector.take();
      // The next bytes come while the consumer works on the batch; a failure counts when they are awaited.
      const filling = block === "more" && walk.fillsLittle ? walk.fill() : null;
      filling?.catch(() => {});
      if (batch.length > 0) yield batch;
      if (filling !== null) await filling;
      else if (block === "more") await walk.fill();
      else if (!await walk.search()) break;
      else facts.faults.gap(walk.position);
      collector.dropTaken();
      walk.giveBack();
      continue;
    }
    offer(block);
    if (collector.isFull) {
      await walk.turn();
      yield collector.take();
      collector.dropTaken();
    }
  }
  // Undecided at the end of the file counts as "no keyframe found": the held blocks then belong to the run that starts
  // here.
  if (!over && !open) opening.held.forEach(accept);
  collector.flush();
  const rest = collector.take();
  if (rest.length > 0) yield rest;
  collector.dropTaken();
}
