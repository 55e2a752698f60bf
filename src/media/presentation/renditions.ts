/** The sounds of a film apart from its pictures, so that a player fetches the one that is heard. */
import { type Carrier, FMP4 } from "../mux/carrier.ts";
import type { FaultLedger } from "../model/faults.ts";
import { layOutFragments, type RunsLayoutOptions } from "../layout/fragment-layout.ts";
import { cmafFormat } from "../mux/cmaf/formats.ts";
import { codecName } from "../codec/codec-name.ts";
import { IndexWork } from "../source/work.ts";
import { planOfLayout } from "../layout/layout-plan.ts";
import { buildProgram } from "../mux/ts/program.ts";
import type { TrackSelection } from "./select.ts";
import { layOutRuns } from "../layout/streamed-layout.ts";
import { bytesOfTracks, type MediaIndex } from "../model/timeline.ts";
import { runsOfIndex } from "../transcode/tabled-runs.ts";
import type { HlsPlan, Presentation, Rendition } from "../model/types.ts";

/**
 * `planRenditions` for the tracks of `selection`; nothing where there is one sound, or no picture. What ffmpeg reads has none
 * either: each rendition would be another process. All of them count in `faults`.
 */
export function renditionsOf(
  index: MediaIndex,
  { indexes, sounds }: TrackSelection,
  carrier: Carrier,
  options: RunsLayoutOptions,
  faults: FaultLedger,
): Pick<Presentation, "planRenditions"> {
  const { tracks } = index;
  const video = indexes.find((i) => tracks[i]!.kind === "video");
  if (video === undefined || sounds.length < 2 || index.container === "other") return {};
  return {
    planRenditions: async (source, signal) => {
      const work = new IndexWork(source, signal);
      const timeline = { ...await runsOfIndex(index, work).finally(() => work.end()), faults };
      const zero90k = options.offset90k + (index.zero90k ?? 0);
      // Players that show them find them beside the pictures.
      const subtitles = indexes.filter((i) => tracks[i]!.kind === "subtitle");
      const planOf = (one: number): HlsPlan => {
        if (carrier === FMP4) {
          const layout = layOutFragments(tracks, timeline, [one], options);
          return planOfLayout(layout, zero90k, layout.form);
        }
        const { target90k, isVideo } = options;
        // Slots of MPEG TS that have their size in advance would double a sound: they have room for clocks and tables.
        const own = one === video ? [one, ...subtitles] : [one];
        const bytesOf = one === video ? bytesOfTracks(tracks, own) : () => null;
        return planOfLayout(layOutRuns(buildProgram(tracks, own), timeline, target90k, isVideo, bytesOf), zero90k);
      };
      const renditionOf = (one: number): Rendition => {
        const track = tracks[one]!;
        const codecs = carrier === FMP4 ? cmafFormat(track)!.codecs : codecName(track);
        return { trackIndex: one, track, codecs, plan: planOf(one) };
      };
      return { video: renditionOf(video), sounds: sounds.map(renditionOf) };
    },
  };
}
