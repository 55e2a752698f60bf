/** The drawn subtitles of a session's film: which there are, and their files segment by segment. */
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import { scriptHead, scriptLines, supOf } from "../media/subtitles/drawn-files.ts";
import type { DrawnForm } from "../media/model/types.ts";
import type { Clock } from "../ports.ts";
import { distinct, type RenditionName, renditionName } from "./rendition-names.ts";
import type { PlaybackSession } from "./session.ts";

/** Deadline for the bytes of a segment, ms: as long as that of texts. */
const READ_TIMEOUT_MS = 60_000;

/** A drawn track that is offered. */
export interface DrawnTrack extends RenditionName {
  /** Its number in `SegmentDrawings.tracks`. */
  readonly number: number;
  readonly form: DrawnForm;
  readonly isForced: boolean;
}

type Read = Pick<PlaybackSession, "hls" | "swarm" | "file" | "holder" | "signal">;

/** The drawn tracks of a film, in the order of the file, and where its segments begin from the first of them on, ms. */
export interface DrawnSubtitles {
  readonly tracks: readonly DrawnTrack[];
  readonly startsMs: readonly number[];
}

/** The drawn tracks of `session`; of a film without any the lists are empty. */
export function drawnSubtitlesOf({ hls }: Pick<PlaybackSession, "hls">): DrawnSubtitles {
  const { tracks = [], startsMs = [] } = hls?.drawings ?? {};
  return {
    tracks: distinct(tracks.map(({ track, form }, number): DrawnTrack => ({
      ...renditionName(track, "Subtitles"),
      number,
      form,
      isForced: track.isForced ?? false,
    }))),
    startsMs: startsMs.map((startMs) => Math.round(startMs - startsMs[0]!)),
  };
}

/** The head of script `number`: what stands before its events; null when there is no such script. */
export function drawnHeadOf({ hls }: Pick<PlaybackSession, "hls">, number: number): string | null {
  const { track, form } = hls?.drawings?.tracks[number] ?? {};
  return track === undefined || form !== "ass" ? null : scriptHead(track.codecPrivate);
}

/**
 * What track `number` begins to show in segment `n`, as a `.sup` or the lines of a script, with times from the first segment
 * on; null when there is no such track or segment. It reads the bytes of that segment, which the player reads as well; with
 * `onlyHere` it is empty unless they have arrived. Rejects as `ByteSource.read`, with `timeout`, or with the signal's reason.
 */
export async function drawnSegmentOf(
  session: Read,
  number: number,
  n: number,
  onlyHere: boolean,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ readonly form: DrawnForm; readonly body: Uint8Array<ArrayBuffer> | string } | null> {
  const { hls, swarm, file, holder } = session;
  const { drawings } = hls ?? {};
  const form = drawings?.tracks[number]?.form;
  if (drawings === undefined || form === undefined || drawings.startsMs[n] === undefined) return null;
  const late = deadline(
    clock,
    READ_TIMEOUT_MS,
    AbortSignal.any([signal, session.signal]),
    () => new MillraceError("timeout", `segment ${n} of the subtitles did not come in time`),
  );
  const reader = swarm.openReader(file.index, { readAheadBytes: 0 });
  reader.holder = holder;
  try {
    const units = onlyHere && !drawings.isHere(n, reader) ? [] : await drawings.read(number, n, reader, late.signal);
    const zero90k = drawings.startsMs[0]! * 90;
    return { form, body: form === "pgs" ? supOf(units, zero90k) : scriptLines(units, zero90k) };
  } finally {
    late.cancel();
    reader.close();
  }
}
