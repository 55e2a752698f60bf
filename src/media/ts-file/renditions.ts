/** The sounds of a transport stream apart from its pictures, and the captions in these. */
import type { ByteSource } from "../../bytes/source.ts";
import { describeTracks } from "../mux/cmaf/live/fragments.ts";
import { codecName } from "../codec/codec-name.ts";
import type { HlsPlan, Presentation, Rendition, Track } from "../model/types.ts";

/** A plan whose segments can be had with some of their tracks. */
interface DivisiblePlan extends HlsPlan {
  only(pick: (tracks: readonly Track[]) => readonly Track[]): HlsPlan;
}

/**
 * `planRenditions` of a transport stream of `tracks`, where `output` has pictures and several sounds, and `findCaptions` where
 * it has pictures. Both read the beginning of the first segment.
 */
export function tsRenditions(
  tracks: readonly Track[],
  output: readonly Track[],
  planned: (source: ByteSource, signal: AbortSignal) => Promise<DivisiblePlan>,
): Pick<Presentation, "planRenditions" | "findCaptions"> {
  const video = output.find(({ kind }) => kind === "video");
  const sounds = output.filter(({ kind }) => kind === "audio");
  if (video === undefined) return {};
  let looked: Awaited<ReturnType<typeof describeTracks>> | null = null;
  const look = async (source: ByteSource, signal: AbortSignal) => {
    const plan = await planned(source, signal);
    looked ??= await describeTracks(plan.readSegment(0, source, signal), output, signal);
    return { plan, ...looked };
  };
  const findCaptions = async (source: ByteSource, signal: AbortSignal) => (await look(source, signal)).captions;
  if (sounds.length < 2) return { findCaptions };
  return {
    findCaptions,
    planRenditions: async (source, signal) => {
      const { plan, known } = await look(source, signal);
      const renditionOf = (one: Track, pick: (tracks: readonly Track[]) => readonly Track[]): Rendition => {
        const track = known.get(one.id) ?? one;
        return { trackIndex: tracks.indexOf(one), track, codecs: codecName(track), plan: plan.only(pick) };
      };
      // Where another program follows, the sound in the same place goes on.
      const soundOf = (sound: Track, place: number) => (all: readonly Track[]) => {
        const there = all.filter(({ kind }) => kind === "audio");
        return [there.find(({ id }) => id === sound.id) ?? there[place] ?? there[0]].filter((one) => one !== undefined);
      };
      return {
        video: renditionOf(video, (all) => all.filter(({ kind }) => kind === "video")),
        sounds: sounds.map((sound, place) => renditionOf(sound, soundOf(sound, place))),
      };
    },
  };
}
