/** Subtitles inside a film that are drawn, not written: pictures of discs and scripts, segment by segment as the file has them. */
import { isTurnDue, turnWhenDue } from "../../bytes/turn.ts";
import { MillraceError } from "../../errors.ts";
import { ConsiderateSource } from "../source/work.ts";
import type { Layout } from "../layout/tabled-layout.ts";
import type { MediaIndex } from "../model/timeline.ts";
import type { DrawnForm, DrawnUnit, HlsPlan, Track } from "../model/types.ts";

/** Drawn tracks that are offered: as many as texts. */
const MAX_TRACKS = 60;
/** Blocks of a segment: scripts that move a sign picture by picture have some hundreds per second. */
const MAX_UNITS = 8192;
/** Bytes of a segment: a dozen pictures of full HD, or all of the densest scripts seen. Players of a film read one at a time. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Largest block of a script, bytes. Drawings in one line have some kilobytes. */
const MAX_LINE_BYTES = 64 * 1024;

/** How `track` is drawn; null: it is not. */
export function drawnForm({ kind, codec, codecId }: Track): DrawnForm | null {
  if (kind !== "subtitle") return null;
  if (codec === "pgs") return "pgs";
  return ["S_TEXT/ASS", "S_ASS"].includes(codecId) ? "ass" : null;
}

/**
 * The drawn subtitles of `index` for an HLS plan over `layout`, whose times are those of the index plus `offset90k`; none
 * where the container is not Matroska.
 */
export function segmentDrawings(index: MediaIndex, layout: Layout, offset90k: number): Pick<HlsPlan, "drawings"> {
  const { timeline, container, tracks } = index;
  const { runsOf } = layout;
  if (container !== "matroska" || timeline.kind !== "streamed" || runsOf === undefined) return {};
  const found = tracks.flatMap((track, i) => {
    const form = drawnForm(track);
    return form === null ? [] : [{ track, form, i }];
  }).slice(0, MAX_TRACKS);
  if (found.length === 0) return {};
  const { runs } = timeline;
  const count = layout.starts90k.length;
  const requireSegment = (n: number) => {
    if (n < 0 || n >= count) throw new MillraceError("not_found", "no such segment of subtitles");
  };
  return {
    drawings: {
      tracks: found,
      ...(index.findFonts === undefined || !found.some(({ form }) => form === "ass")
        ? {}
        : { findFonts: (...from) => index.findFonts!(...from) }),
      startsMs: layout.starts90k.map((start90k) => (start90k + offset90k) / 90),
      isHere(n, source) {
        requireSegment(n);
        const [first, end] = runsOf(n);
        const from = runs[first]!.sourceStart;
        const lengthBytes = runs[end - 1]!.sourceEnd - from;
        return (source.availableFrom?.(from, lengthBytes) ?? lengthBytes) >= lengthBytes;
      },
      async read(number, n, source, signal) {
        requireSegment(n);
        const one = found[number];
        if (one === undefined) throw new MillraceError("not_found", "no such subtitles");
        const [first, end] = runsOf(n);
        const units: DrawnUnit[] = [];
        let bytes = 0;
        const reading = new ConsiderateSource(source);
        for (let run = first; run < end; run++) {
          for await (const batch of timeline.readRun(run, new Set([one.i]), reading, signal)) {
            for (const { data, pts90k, shown90k } of batch) {
              if (isTurnDue()) await turnWhenDue(signal);
              if (one.form === "ass" && data.length > MAX_LINE_BYTES) continue;
              if (units.length >= MAX_UNITS || bytes + data.length > MAX_BYTES) return units;
              bytes += data.length;
              // A copy: the block is a small part of a read.
              units.push({ at90k: pts90k + offset90k, shown90k: shown90k ?? null, data: data.slice() });
            }
          }
        }
        return units;
      },
    },
  };
}
