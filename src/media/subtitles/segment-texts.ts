/** The texts inside a film, segment by segment: they stand among the pictures of the same time. */
import type { ByteSource } from "../../bytes/source.ts";
import { isTurnDue, turnWhenDue } from "../../bytes/turn.ts";
import { MillraceError } from "../../errors.ts";
import { ConsiderateSource } from "../source/work.ts";
import { sampleAt } from "../mux/ts/slots.ts";
import { readExtents } from "../source/extents.ts";
import type { Layout } from "../layout/tabled-layout.ts";
import type { MediaIndex } from "../model/timeline.ts";
import type { Cue, HlsPlan } from "../model/types.ts";
import { MAX_CUES } from "./cues.ts";
import { cuesOf, isTextCodec } from "./track-text.ts";

/** A sample of tx3g that is no longer than this shows nothing: the gaps are samples, too. */
const EMPTY_BYTES = 2;
/** Text tracks that are offered: films come in no more languages. */
const MAX_TRACKS = 60;
/** Segments whose lasting cues are kept: one for each of a few players of a film, and of these cues a screen full. */
const MAX_KEPT = 16;
const MAX_LASTING = 32;

/** Characters of a segment: as many as are spoken in ten hours. */
const MAX_CHARACTERS = 1 << 19;

/**
 * Texts that are shown at once: several screens full. Scripts that draw with texts have thousands, which as plain text would
 * hide the picture.
 */
const MAX_AT_ONCE = 50;

/** What a segment has room for. */
class Room {
  /** When the texts end that are shown where the newest one begins. */
  #endsMs: number[] = [];
  #cues = MAX_CUES;
  #characters = MAX_CHARACTERS;

  get isFull(): boolean {
    return this.#cues <= 0 || this.#characters <= 0;
  }

  /** Appends `more` to `cues` while there is room. */
  add(cues: Cue[], more: readonly Cue[]): void {
    for (const cue of more) {
      if (this.isFull) return;
      this.#endsMs = this.#endsMs.filter((endMs) => endMs > cue.startMs);
      if (this.#endsMs.length >= MAX_AT_ONCE) continue;
      this.#endsMs.push(cue.endMs);
      this.#cues--;
      this.#characters -= cue.text.length;
      cues.push(cue);
    }
  }
}

/**
 * The texts of `index` for an HLS plan over `layout`, whose times are those of the index plus `offset90k`; none where the
 * container is neither MP4 nor Matroska, or no track can be read.
 */
export function segmentTexts(index: MediaIndex, layout: Layout, offset90k: number): Pick<HlsPlan, "texts"> {
  const { timeline, container } = index;
  if (timeline.kind === "tabled") return tabledTexts(index, layout, offset90k);
  const { runsOf } = layout;
  if ((container !== "matroska" && container !== "mp4") || runsOf === undefined) return {};
  const found = index.tracks.flatMap((track, i) =>
    track.kind === "subtitle" && isTextCodec(track.codecId) ? [{ track, i }] : []
  ).slice(0, MAX_TRACKS);
  if (found.length === 0) return {};
  const { runs } = timeline;
  const endMs = (n: number) => ((layout.starts90k[n + 1] ?? Infinity) + offset90k) / 90;
  /** By track and segment: cues that are still shown when the segment ends. The oldest comes first. */
  const lasting = new Map<string, readonly Cue[]>();
  const keep = (key: string, cues: readonly Cue[]) => {
    lasting.delete(key);
    lasting.set(key, cues);
    for (const oldest of lasting.keys()) {
      if (lasting.size <= MAX_KEPT) break;
      lasting.delete(oldest);
    }
  };
  const readOwn = async (number: number, n: number, source: ByteSource, signal: AbortSignal) => {
    const { track: { codecId }, i } = found[number]!;
    const [first, end] = runsOf(n);
    const cues: Cue[] = [];
    const room = new Room();
    const reading = new ConsiderateSource(source);
    for (let run = first; run < end; run++) {
      for await (const batch of timeline.readRun(run, new Set([i]), reading, signal)) {
        for (const { data, pts90k, shown90k, beside } of batch) {
          const shownMs = shown90k === undefined ? null : shown90k / 90;
          if (room.isFull) return cues;
          // A segment may have some megabytes of small texts.
          if (isTurnDue()) await turnWhenDue(signal);
          room.add(cues, cuesOf(codecId, data, (pts90k + offset90k) / 90, shownMs, beside ?? null));
        }
      }
    }
    return cues;
  };
  return {
    texts: {
      tracks: found.map(({ track }) => track),
      async read(number, n, source, signal) {
        if (found[number] === undefined || n >= layout.starts90k.length) {
          throw new MillraceError("not_found", "no such subtitles");
        }
        const keyOf = (segment: number) => `${number}/${segment}`;
        const begunIn = (segment: number) => {
          const kept = lasting.get(keyOf(segment));
          if (kept !== undefined || segment < 0) return kept ?? [];
          const [first, end] = runsOf(segment);
          const from = runs[first]!.sourceStart;
          const lengthBytes = runs[end - 1]!.sourceEnd - from;
          // After a seek. What is not here is not fetched for this: the pictures don't need it.
          if ((source.availableFrom?.(from, lengthBytes) ?? lengthBytes) < lengthBytes) return [];
          return readOwn(number, segment, source, signal);
        };
        const before = (await begunIn(n - 1)).filter((cue) => cue.endMs > endMs(n - 1)).slice(0, MAX_LASTING);
        const cues = [...before, ...await readOwn(number, n, source, signal)];
        keep(keyOf(n), cues.filter((cue) => cue.endMs > endMs(n)).slice(0, MAX_LASTING));
        return cues;
      },
    },
  };
}

/** As `segmentTexts`, of texts whose place and time the index names: each is one small read. */
function tabledTexts(
  { tracks, texts = [] }: MediaIndex,
  { starts90k }: Layout,
  offset90k: number,
): Pick<HlsPlan, "texts"> {
  if (texts.length === 0) return {};
  return {
    texts: {
      tracks: texts.map(({ track }) => tracks[track]!),
      async read(number, n, source, signal) {
        const table = texts[number]?.table;
        if (table === undefined || n >= starts90k.length) throw new MillraceError("not_found", "no such subtitles");
        const { count, dts90k, offsets, sizes } = table;
        const timeOf = (i: number) => dts90k.at(i) + (table.ptsShift90k?.at(i) ?? 0);
        // The one before may still be shown.
        const first = Math.max(0, sampleAt(table, starts90k[n]!) - 1);
        const units: number[] = [];
        for (let i = first; i < count && timeOf(i) < (starts90k[n + 1] ?? Infinity); i++) {
          if (units.length >= MAX_CUES) break;
          if (sizes.at(i) > EMPTY_BYTES) units.push(i);
        }
        const cues: Cue[] = [];
        const places = units.map((i) => ({ offset: offsets.at(i), sizeBytes: sizes.at(i) }));
        const room = new Room();
        let at = 0;
        const { codecId } = tracks[texts[number]!.track]!;
        for await (const batch of readExtents(new ConsiderateSource(source), places, signal)) {
          for (const [k, data] of batch.data.entries()) {
            if (isTurnDue()) await turnWhenDue(signal);
            const i = units[at++]!;
            const text = data.subarray(batch.from[k]!, batch.from[k]! + sizes.at(i));
            const shownMs = i + 1 < count ? (timeOf(i + 1) - timeOf(i)) / 90 : null;
            room.add(cues, cuesOf(codecId, text, (timeOf(i) + offset90k) / 90, shownMs));
          }
        }
        return cues.filter(({ endMs }) => endMs > (starts90k[n]! + offset90k) / 90);
      },
    },
  };
}
