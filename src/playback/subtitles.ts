/** The subtitles of a session: files beside the film in its torrent. */
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import { readCues } from "../media/subtitles/cues.ts";
import { renderWebVtt } from "../media/subtitles/webvtt.ts";
import type { Clock } from "../ports.ts";
import type { PlaybackSession } from "./session.ts";
import { type Sidecar, sidecarsOf } from "./sidecars.ts";

/** Deadline for a file of subtitles, ms. */
const READ_TIMEOUT_MS = 60_000;

/** The subtitles that a session offers, in the order of the torrent; none if the output is not HLS. */
export function subtitlesOf(session: PlaybackSession): readonly Sidecar[] {
  return session.identity.output === "hls" ? sidecarsOf(session.swarm.metainfo?.files ?? [], session.file) : [];
}

/**
 * Subtitles as WebVTT, fetched like any other part of the torrent. Rejects as `ByteSource.read`, with `timeout`, or with the
 * signal's reason.
 */
export async function subtitleText(
  session: PlaybackSession,
  { file }: Sidecar,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> {
  const late = deadline(
    clock,
    READ_TIMEOUT_MS,
    AbortSignal.any([signal, session.signal]),
    () => new MillraceError("timeout", `${file.name} did not come in time`),
  );
  const reader = session.swarm.openReader(file.index, { readAheadBytes: 0 });
  try {
    const bytes = await reader.read(0, file.sizeBytes, { signal: late.signal });
    return renderWebVtt(readCues(bytes), session.hls?.zeroPts90k ?? null);
  } finally {
    late.cancel();
    reader.close();
  }
}
