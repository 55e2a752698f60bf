/** Captions in the first pictures of a film whose index is known. */
import { isTurnDue, turnWhenDue } from "../../bytes/turn.ts";
import { CaptionFinder } from "../codec/captions.ts";
import type { MediaIndex } from "../model/timeline.ts";
import type { Codec, Presentation } from "../model/types.ts";
import { readExtents } from "../source/extents.ts";

/** Pictures that are looked at: two seconds. */
const PICTURES = 50;
/** Bytes after which no further picture is looked at: the first seconds of a film of 16 Mbit/s. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Codecs whose pictures have room for captions (ATSC A/53 part 4, A/72 part 1). */
const WITH_CAPTIONS: ReadonlySet<Codec> = new Set(["h264", "hevc", "mpeg2video"]);

/**
 * `findCaptions` for the pictures of track `video`: it reads the first ones, which the first segment needs, too, and no more once
 * they were read. Nothing where there are no pictures, or none with captions.
 */
export function captionsOf(index: MediaIndex, video: number | undefined): Pick<Presentation, "findCaptions"> {
  if (video === undefined || !WITH_CAPTIONS.has(index.tracks[video]!.codec) || index.container === "other") return {};
  let known: readonly string[] | null = null;
  return {
    findCaptions: async (source, signal) => {
      if (known !== null) return known;
      const finder = new CaptionFinder();
      let pictures = 0;
      let bytes = 0;
      for await (const picture of firstPictures(index, video, source, signal)) {
        finder.push(picture);
        bytes += picture.length;
        if (++pictures >= PICTURES || bytes >= MAX_BYTES) break;
        if (isTurnDue()) await turnWhenDue(signal);
      }
      return known ??= finder.found;
    },
  };
}

/** The pictures of the first run, or of the beginning of a table. */
async function* firstPictures(
  { timeline }: MediaIndex,
  video: number,
  ...[source, signal]: Parameters<NonNullable<Presentation["findCaptions"]>>
): AsyncGenerator<Uint8Array> {
  if (timeline.kind === "streamed") {
    for await (const batch of timeline.readRun(0, new Set([video]), source, signal)) {
      for (const { data } of batch) yield data;
    }
    return;
  }
  const table = timeline.tables[video];
  if (table == null) return;
  const places = Array.from(
    { length: Math.min(table.count, PICTURES) },
    (_, i) => ({ offset: table.offsets.at(i), sizeBytes: table.sizes.at(i) }),
  );
  let at = 0;
  for await (const batch of readExtents(source, places, signal)) {
    for (const [k, data] of batch.data.entries()) {
      const from = batch.from[k]!;
      yield data.subarray(from, from + places[at++]!.sizeBytes);
    }
  }
}
