/** The texts inside a film, segment by segment: they stand among the pictures of the same time. */
import type { ByteSource } from "../../bytes/source.ts";
import { MillraceError } from "../../errors.ts";
import type { Layout } from "../tabled-layout.ts";
import type { MediaIndex } from "../timeline.ts";
import type { HlsPlan } from "../types.ts";
import { type Cue, MAX_CUES } from "./cues.ts";
import { cueOf, isTextCodec } from "./track-text.ts";

/** Text tracks that are offered: films come in no more languages. */
const MAX_TRACKS = 60;
/** Segments whose lasting cues are kept: one for each of the players of a film, and of these cues a screen full. */
const MAX_KEPT = 64;
const MAX_LASTING = 32;

/**
 * The texts of `index` for an HLS plan over `layout`, whose times are those of the index plus `offset90k`; none where the
 * container is not Matroska, or no track can be read.
 */
export function segmentTexts(index: MediaIndex, layout: Layout, offset90k: number): Pick<HlsPlan, "texts"> {
  const { timeline, container } = index;
  const { runsOf } = layout;
  if (timeline.kind !== "streamed" || container !== "matroska" || runsOf === undefined) return {};
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
    for (let run = first; run < end; run++) {
      for await (const batch of timeline.readRun(run, new Set([i]), source, signal)) {
        for (const { data, pts90k, shown90k } of batch) {
          const shownMs = shown90k === undefined ? null : shown90k / 90;
          const cue = cueOf(codecId, data, (pts90k + offset90k) / 90, shownMs);
          if (cue !== null && cues.length < MAX_CUES) cues.push(cue);
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
