/** The texts inside a session's film: which there are, and their WebVTT segment by segment. */
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import { renderWebVtt } from "../media/subtitles/webvtt.ts";
import type { Clock } from "../ports.ts";
import { type RenditionName, renditionName } from "./rendition-names.ts";
import type { PlaybackSession } from "./session.ts";

/** Deadline for the bytes of a segment, ms: as long as that of a file of subtitles. */
const READ_TIMEOUT_MS = 60_000;

/** A text track that is offered. */
export interface InnerText extends RenditionName {
  /** Its number in `SegmentTexts.tracks`. */
  readonly number: number;
  readonly isForced: boolean;
}

/** The text tracks of `session`, in the order of the file. */
export function innerTextsOf({ hls }: Pick<PlaybackSession, "hls">): readonly InnerText[] {
  return (hls?.texts?.tracks ?? []).map((track, number): InnerText => ({
    ...renditionName(track, "Subtitles"),
    number,
    isForced: track.isForced ?? false,
  }));
}

/**
 * The WebVTT of the texts that are shown in segment `n`; null when there is no such track or segment. It reads the bytes of
 * that segment, which the player reads as well. Rejects as `ByteSource.read`, with `timeout`, or with the signal's reason.
 */
export async function innerTextOf(
  session: Pick<PlaybackSession, "hls" | "swarm" | "file" | "holder" | "signal">,
  number: number,
  n: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const { hls, swarm, file, holder } = session;
  if (!hls?.texts?.tracks[number] || !hls.segments[n]) return null;
  const late = deadline(
    clock,
    READ_TIMEOUT_MS,
    AbortSignal.any([signal, session.signal]),
    () => new MillraceError("timeout", `segment ${n} of the subtitles did not come in time`),
  );
  const reader = swarm.openReader(file.index, { readAheadBytes: 0 });
  reader.holder = holder;
  try {
    // Their times are those of the segments already.
    return new TextEncoder().encode(renderWebVtt(await hls.texts.read(number, n, reader, late.signal), 0));
  } finally {
    late.cancel();
    reader.close();
  }
}
