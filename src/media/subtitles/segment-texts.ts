/** The texts inside a film, segment by segment: they stand among the pictures of the same time. */
import { MillraceError } from "../../errors.ts";
import type { Layout } from "../tabled-layout.ts";
import type { MediaIndex } from "../timeline.ts";
import type { HlsPlan } from "../types.ts";
import { type Cue, MAX_CUES } from "./cues.ts";
import { cueOf, isTextCodec } from "./track-text.ts";

/** Text tracks that are offered: films come in no more languages. */
const MAX_TRACKS = 60;

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
  return {
    texts: {
      tracks: found.map(({ track }) => track),
      async read(number, n, source, signal) {
        const one = found[number];
        if (one === undefined || n >= layout.starts90k.length) {
          throw new MillraceError("not_found", "no such subtitles");
        }
        const [first, end] = runsOf(n);
        const cues: Cue[] = [];
        for (let run = first; run < end; run++) {
          for await (const batch of timeline.readRun(run, new Set([one.i]), source, signal)) {
            for (const { data, pts90k, shown90k } of batch) {
              const shownMs = shown90k === undefined ? null : shown90k / 90;
              const cue = cueOf(one.track.codecId, data, (pts90k + offset90k) / 90, shownMs);
              if (cue !== null && cues.length < MAX_CUES) cues.push(cue);
            }
          }
        }
        return cues;
      },
    },
  };
}
