/**
 * The newest segments of a broadcast in parts, as players with little delay fetch them. One feed follows the window for
 * all players of the same sound, and only while there are some.
 */
import { hasCode } from "../../errors.ts";
import { type MadePart, PartMaker } from "../../media/mux/cmaf/live/part-maker.ts";
import type { Track } from "../../media/model/types.ts";
import type { Clock, Timer } from "../../ports.ts";
import type { GrowingSegment, LiveCuts, LiveSegment } from "./live-cuts.ts";
import type { LiveChoice, LiveFragments, NamedForm } from "./live-fragments.ts";
import type { PacketWindow } from "./packet-window.ts";

/** Most packets read at a time, bytes: half a megabyte. */
const READ_PACKETS = 2800;
/** Most bytes of parts kept: some ten seconds of 25 Mbit/s. Older parts go first; what lists them is then the segment alone. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** Most parts of a segment: more than ten seconds have. A hostile stream, with times that stand still, has more. */
const MAX_PARTS = 64;
/** A feed that nobody asked for this long, ms, ends and forgets its parts. */
const IDLE_MS = 30_000;
/** Players are told why it failed for this long, ms, before another feed tries. */
const FAILED_MS = 5000;
/** Media before the edge with which a feed begins, ms: as much as the first playlist holds. */
const BEGIN_MS = 4000;
/** A new segment of another form is described once it has this much, ms, if one of its streams does not begin. */
const LOOK_MS = 1000;

/** A segment of which there are parts. */
export interface PartedSegment {
  readonly n: number;
  /** Facts of the segment, as far as they were known when its first part was made. */
  readonly facts: Pick<LiveSegment, "startMs" | "discontinuity">;
  readonly form: NamedForm;
  readonly parts: MadePart[];
}

interface Run {
  readonly maker: PartMaker;
  readonly form: NamedForm;
  n: number;
  /** Packet that is read next. */
  packet: number;
  /** Number of the segment of the next part: it waits for its last sound while `n` is the next one. */
  out: number;
}

/** What parts need of a broadcast: its window, its segments, and to hear when it grows. */
export interface PartedBroadcast {
  readonly window: PacketWindow;
  readonly cuts: LiveCuts;
  readonly fragments: LiveFragments;
  readonly segments: readonly LiveSegment[];
  readonly ended: boolean;
  readonly ending: AbortSignal;
  runEnd(packet: number): number | null;
  readableEnd(packet: number): number;
  tracksOf(segment: LiveSegment, audioWish: string | null): readonly Track[];
  grown(signal: AbortSignal): Promise<void>;
}

/** Makes and keeps the parts of one choice of tracks. */
export class LiveParts {
  readonly #stream: PartedBroadcast;
  readonly #clock: Clock;
  readonly #choice: LiveChoice;
  readonly #ended: () => void;
  readonly #stopping = new AbortController();
  readonly #held = new Map<number, PartedSegment>();
  #heldBytes = 0;
  #run: Run | null = null;
  /** Segment with which the next run begins; null: one near the edge. */
  #nextNumber: number | null = null;
  #idle: Timer | null = null;
  #changed = new Set<() => void>();
  /** Why it ended; null: it goes on. */
  #failure: { readonly error: unknown } | null = null;

  /** Begins to follow `stream`. `ended` is called once nothing more comes of it. */
  constructor(stream: PartedBroadcast, clock: Clock, choice: LiveChoice, ended: () => void) {
    this.#stream = stream;
    this.#clock = clock;
    this.#choice = choice;
    this.#ended = ended;
    this.touch();
    void this.#follow();
  }

  /** Somebody asks for it. */
  touch(): void {
    this.#idle?.cancel();
    this.#idle = this.#clock.setTimeout(() => this.#stopping.abort(), IDLE_MS);
  }

  /** Segment `n` in parts; null when none of it is kept. */
  segment(n: number): PartedSegment | null {
    return this.#held.get(n) ?? null;
  }

  /** Number of the segment of which the next part comes: those before have all that they will have. null: not known yet. */
  get next(): number | null {
    return this.#run?.out ?? this.#nextNumber;
  }

  /** Whether somebody waits for its next part. */
  get isAwaited(): boolean {
    return this.#changed.size > 0;
  }

  /** Throws why no parts are made. */
  check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Resolves when there is another part, or never will be; rejects with the signal's reason. */
  changed(signal: AbortSignal): Promise<void> {
    if (this.#failure !== null || this.#stopping.signal.aborted) return Promise.resolve();
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const abort = () => {
        this.#changed.delete(wake);
        reject(signal.reason);
      };
      const wake = () => {
        signal.removeEventListener("abort", abort);
        resolve();
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#changed.add(wake);
    });
  }

  /** Ends it. */
  close(): void {
    this.#stopping.abort();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      for (;;) {
        let end: number;
        let open: number | null;
        do {
          end = this.#stream.window.end;
          open = this.#stream.cuts.openNumber;
          await this.#pump(signal);
        } while (end !== this.#stream.window.end || open !== this.#stream.cuts.openNumber);
        if (this.#stream.ended && this.#run === null) break;
        await this.#stream.grown(signal);
        if (signal.aborted) break;
      }
    } catch (error) {
      if (!signal.aborted) this.#failure = { error };
    } finally {
      this.#idle?.cancel();
      this.#stopping.abort();
      if (this.#failure === null) this.#ended();
      else this.#clock.setTimeout(this.#ended, FAILED_MS);
      this.#wake();
    }
  }

  async #pump(signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#run ??= await this.#enter(signal);
      const run = this.#run;
      if (run === null) return;
      const segment = this.#stream.cuts.growing(run.n);
      // The window moved past it, or its beginning was no segment after all.
      if (segment === null || run.packet < this.#stream.window.base) {
        this.#restart(null);
        continue;
      }
      if (!await this.#read(run, segment, signal)) continue;
      if (segment.endPacket === null) return;
      if (await this.#advance(run, segment, signal)) continue;
      return;
    }
  }

  /** Reads what is there of `segment`, and makes its parts. False: the run has ended. */
  async #read(run: Run, segment: GrowingSegment, signal: AbortSignal): Promise<boolean> {
    const end = segment.endPacket ?? Math.max(run.packet, this.#stream.readableEnd(segment.firstPacket));
    try {
      while (run.packet < end) {
        const count = Math.min(READ_PACKETS, end - run.packet);
        run.maker.push(await this.#stream.window.packets(run.packet, count));
        if (signal.aborted) return false;
        run.packet += count;
        if (run.packet < end) this.#add(run, run.maker.take(false));
      }
    } catch (error) {
      if (!hasCode(error, "not_found")) throw error;
      this.#restart(null);
      return false;
    }
    if (segment.endPacket === null) run.maker.unitEnded();
    if (this.#run !== run) return false;
    this.#add(run, segment.endPacket === null ? run.maker.take(true) : []);
    return this.#run === run;
  }

  /** Goes on to the segment after `segment`, which is over. False: it has not begun. */
  async #advance(run: Run, segment: GrowingSegment, signal: AbortSignal): Promise<boolean> {
    const { cuts } = this.#stream;
    const next = cuts.growing(run.n + 1);
    const isOver = next !== null || cuts.openNumber === null || this.#stream.ended;
    if (!isOver) return false;
    const end90k = segment.start90k + Math.round(segment.durationMs * 90);
    const form = next === null || next.discontinuity || next.program !== segment.program
      ? null
      : await this.#formOf(next, signal);
    if (form !== null && form === run.form) {
      run.maker.segmentEnded(end90k, true);
      run.n++;
      return true;
    }
    if (form === null && next !== null && !next.discontinuity && next.program === segment.program) return false;
    // What follows is another stream: the sound of this one's time stands up to the segment's limit.
    run.maker.segmentEnded(end90k, false);
    const limit = cuts.segments.find(({ n }) => n === run.n)?.limitPacket ?? run.packet;
    const rest = Math.min(limit, this.#stream.runEnd(segment.firstPacket) ?? limit) - run.packet;
    if (rest > 0) {
      run.maker.push(await this.#stream.window.packets(run.packet, Math.min(rest, READ_PACKETS)).catch(() => NOTHING));
    }
    this.#add(run, run.maker.take(true, true));
    this.#restart(run.n + 1);
    return next !== null;
  }

  #restart(next: number | null): void {
    this.#run = null;
    this.#nextNumber = next;
  }

  async #enter(signal: AbortSignal): Promise<Run | null> {
    const { cuts } = this.#stream;
    const segment = this.#nextNumber === null ? this.#nearEdge() : cuts.growing(this.#nextNumber);
    if (segment === null) {
      const isGone = this.#nextNumber !== null && this.#nextNumber < (cuts.segments[0]?.n ?? 0);
      if (isGone) this.#nextNumber = null;
      return null;
    }
    const form = await this.#formOf(segment, signal);
    if (form === null) return null;
    const tracks = this.#stream.tracksOf(asSegment(segment, 0), this.#choice.audioWish);
    this.#nextNumber = segment.n;
    return {
      maker: new PartMaker(form.form, tracks, segment.start90k),
      form,
      n: segment.n,
      packet: segment.firstPacket,
      out: segment.n,
    };
  }

  /** The segment with which a new feed begins. */
  #nearEdge(): GrowingSegment | null {
    const { segments } = this.#stream;
    let ms = 0;
    let at = segments.length;
    while (at > 0 && ms < BEGIN_MS) ms += segments[--at]!.durationMs;
    const { cuts } = this.#stream;
    return at < segments.length
      ? cuts.growing(segments[at]!.n)
      : cuts.openNumber === null
      ? null
      : cuts.growing(cuts.openNumber);
  }

  /** What `segment` needs; null while it cannot be told. */
  async #formOf(segment: GrowingSegment, signal: AbortSignal): Promise<NamedForm | null> {
    const { fragments, segments } = this.#stream;
    const end = segment.endPacket ?? this.#stream.readableEnd(segment.firstPacket);
    if (end <= segment.firstPacket) return null;
    const before = segments.filter(({ n }) => n < segment.n);
    const isNew = before.length === 0 || segment.discontinuity || before.at(-1)!.program !== segment.program;
    if (segment.endPacket === null && isNew && !segment.hasAll && segment.durationMs < LOOK_MS) return null;
    const forms = await fragments.formsOf([...before, asSegment(segment, end)], this.#choice, signal);
    return forms.at(-1)!;
  }

  #add(run: Run, made: readonly MadePart[]): void {
    for (const part of made) {
      const n = run.out;
      let held = this.#held.get(n);
      if (held === undefined) {
        const facts = this.#stream.cuts.growing(n);
        if (facts === null) return this.#restart(null);
        held = { n, facts, form: run.form, parts: [] };
        this.#held.set(n, held);
        this.#stream.cuts.promise(n);
      }
      held.parts.push(part);
      if (part.isLast) run.out++;
      this.#heldBytes += part.bytes.length;
      if (held.parts.length > MAX_PARTS) return this.#giveUp(run);
    }
    if (made.length === 0) return;
    this.#trim();
    this.#wake();
  }

  /** A segment of more parts than any honest one has: parts begin again with the segment after it. */
  #giveUp(run: Run): void {
    this.#drop(run.out);
    this.#restart(run.out + 1);
    this.#wake();
  }

  #trim(): void {
    for (const n of this.#held.keys()) {
      const isOld = n < (this.next ?? 0) - KEPT_SEGMENTS;
      if (!isOld && (this.#heldBytes <= MAX_HELD_BYTES || this.#held.size === 1)) break;
      this.#drop(n);
    }
  }

  #drop(n: number): void {
    for (const { bytes } of this.#held.get(n)?.parts ?? []) this.#heldBytes -= bytes.length;
    this.#held.delete(n);
  }

  #wake(): void {
    const all = [...this.#changed];
    this.#changed.clear();
    for (const wake of all) wake();
  }
}

/** Segments before the newest whose parts are kept: more than three target durations (RFC 8216bis, 6.2.2). */
const KEPT_SEGMENTS = 5;
const NOTHING: Uint8Array = new Uint8Array(0);

function asSegment(segment: GrowingSegment, end: number): LiveSegment {
  const endPacket = segment.endPacket ?? end;
  return { ...segment, endPacket, limitPacket: endPacket };
}
