/** The segments of a broadcast as fragmented MP4: which init segment each needs, and their bytes. */
import { MillraceError } from "../../errors.ts";
import { type LiveForm, liveForm, liveFragments } from "../../media/mux/cmaf/live/fragments.ts";
import type { Track } from "../../media/model/types.ts";
import type { LiveSegment } from "./live-cuts.ts";

/** Orders of sound, and parts, for which forms are kept: viewers have few, and anybody can ask for more. */
const MAX_CHOICES = 24;

/** What of a broadcast is in segments: all of it, its pictures alone, or the sound of this PID alone. */
export type LivePart = "pictures" | number | null;

/** Those of `tracks` that are in `part`. Where a program has another sound, that goes on. */
export function partOf(tracks: readonly Track[], part: LivePart): readonly Track[] {
  if (part === null) return tracks;
  if (part === "pictures") return tracks.filter(({ kind }) => kind === "video");
  const sounds = tracks.filter(({ kind }) => kind === "audio");
  return (sounds.some(({ id }) => id === part) ? sounds.filter(({ id }) => id === part) : sounds.slice(0, 1));
}

/** Segments of MPEG TS. */
export interface LiveSegments {
  /** The tracks in a segment, the wanted sound before others. */
  tracksOf(segment: LiveSegment, audioWish: string | null, part?: LivePart): readonly Track[];
  /** The segment after `segment`, if it has arrived and continues it; else null. */
  after(segment: LiveSegment): LiveSegment | null;
  /** The bytes of a segment with these tracks. */
  readSegment(
    segment: LiveSegment,
    audioWish: string | null,
    signal: AbortSignal,
    part?: LivePart,
  ): AsyncIterable<Uint8Array>;
}

/** Which tracks of a broadcast. */
export interface LiveChoice {
  readonly audioWish: string | null;
  readonly part: LivePart;
}

const keyOf = ({ audioWish, part }: LiveChoice) => JSON.stringify([audioWish, part]);

/** An init segment. */
export interface NamedForm {
  /** Number of the first segment that needs it. */
  readonly first: number;
  readonly form: LiveForm;
}

/** What the segments of one broadcast need. Nothing is read before somebody asks for it. */
export class LiveFragments {
  readonly #stream: LiveSegments;
  /** By choice, then by number of a segment; the choice that was not used for longest comes first. */
  readonly #byChoice = new Map<string, Map<number, NamedForm>>();
  #reading: Promise<unknown> = Promise.resolve();

  constructor(stream: LiveSegments) {
    this.#stream = stream;
  }

  /**
   * The init segments of `segments`, which are in the order of their numbers. Of a broadcast that has been here for long, those
   * of the beginning and after discontinuities are read at first; after that every new segment is looked at. Rejects with
   * `unsupported_media` where fragmented MP4 carries nothing of it, or with the signal's reason.
   */
  async formsOf(
    segments: readonly LiveSegment[],
    choice: LiveChoice,
    signal: AbortSignal,
  ): Promise<readonly NamedForm[]> {
    const known = this.#byChoice.get(keyOf(choice));
    if (known !== undefined) { for (const n of known.keys()) if (n < segments[0]!.n) known.delete(n); }
    return await this.#inTurn(segments, choice, signal);
  }

  /** One after the other: all players of a broadcast ask for the same. */
  #inTurn(
    segments: readonly LiveSegment[],
    choice: LiveChoice,
    signal: AbortSignal,
  ): Promise<readonly NamedForm[]> {
    const turn = this.#reading.then(() => this.#find(segments, choice, signal));
    this.#reading = turn.catch(() => {});
    return turn;
  }

  async #find(
    segments: readonly LiveSegment[],
    choice: LiveChoice,
    signal: AbortSignal,
  ): Promise<readonly NamedForm[]> {
    const known = this.#knownOf(choice);
    const isFirst = known.size === 0;
    let before: LiveSegment | null = null;
    let last: NamedForm | null = null;
    const found: NamedForm[] = [];
    for (const segment of segments) {
      const continues = before !== null && !segment.discontinuity && segment.program === before.program;
      const kept: NamedForm | undefined = known.get(segment.n) ?? (isFirst && continues ? last! : undefined);
      last = kept ?? await this.#read(segment, choice, continues ? last : null, signal);
      known.set(segment.n, last);
      found.push(last);
      before = segment;
    }
    return found;
  }

  #knownOf(choice: LiveChoice): Map<number, NamedForm> {
    const key = keyOf(choice);
    const known = this.#byChoice.get(key) ?? new Map<number, NamedForm>();
    this.#byChoice.delete(key);
    this.#byChoice.set(key, known);
    for (const oldest of this.#byChoice.keys()) {
      if (this.#byChoice.size <= MAX_CHOICES) break;
      this.#byChoice.delete(oldest);
    }
    return known;
  }

  async #read(
    segment: LiveSegment,
    choice: LiveChoice,
    before: NamedForm | null,
    signal: AbortSignal,
  ): Promise<NamedForm> {
    const { audioWish, part } = choice;
    const bytes = this.#stream.readSegment(segment, audioWish, signal, part);
    try {
      const form = await liveForm(bytes, this.#stream.tracksOf(segment, audioWish, part), signal);
      return before !== null && isPart(form, before.form) ? before : { first: segment.n, form };
    } catch (error) {
      // Damage within a stream that was fine.
      if (before !== null && error instanceof MillraceError && error.code === "unsupported_media") return before;
      throw error;
    }
  }

  /** The init segment that begins with segment `first`; null when it is not known. */
  initOf(first: number, choice: LiveChoice): Uint8Array | null {
    for (const named of this.#byChoice.get(keyOf(choice))?.values() ?? []) {
      if (named.first === first) return named.form.init;
    }
    return null;
  }

  /** The bytes of a segment. Its packets must still be in the window when they are read. Rejects as `formsOf`. */
  async *readSegment(segment: LiveSegment, choice: LiveChoice, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const known = this.#byChoice.get(keyOf(choice))?.get(segment.n);
    const { form } = known ?? (await this.#inTurn([segment], choice, signal))[0]!;
    const { n: number, start90k, durationMs } = segment;
    const next = this.#stream.after(segment);
    const { audioWish, part } = choice;
    const following = next === null ? null : this.#stream.readSegment(next, audioWish, signal, part);
    yield* liveFragments(
      this.#stream.readSegment(segment, audioWish, signal, part),
      this.#stream.tracksOf(segment, audioWish, part),
      form,
      { number, start90k, durationMs, following, isBesidePictures: part !== null },
      signal,
    );
  }
}

/** Whether `form` has nothing but streams of `whole`, described alike. */
function isPart(form: LiveForm, whole: LiveForm): boolean {
  return form.streams.every(({ trackIndex, entry }) => {
    const same = whole.streams.find((other) => other.trackIndex === trackIndex);
    return same !== undefined && same.entry.length === entry.length && same.entry.every((byte, i) => byte === entry[i]);
  });
}
