/** The subtitles of a session: files beside the film in its torrent. */
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import { readCues } from "../media/subtitles/cues.ts";
import { renderWebVtt } from "../media/subtitles/webvtt.ts";
import type { Clock } from "../ports.ts";
import type { PlaybackSession } from "./session.ts";
import { SharedTask } from "./shared-task.ts";
import { type Sidecar, sidecarsOf } from "./sidecars.ts";
import { subtitlesAsUtf8 } from "./subtitle-encoding.ts";

/** Deadline for a file of subtitles, ms. */
const READ_TIMEOUT_MS = 60_000;
/** WebVTT that is kept, bytes: all subtitles of a few films, or some of the largest files. */
const KEPT_BYTES = 8 * 1024 * 1024;

/** The subtitles that a session offers, in the order of the torrent; none if the output is not HLS. */
export function subtitlesOf(session: PlaybackSession): readonly Sidecar[] {
  return session.identity.output === "hls" ? sidecarsOf(session.swarm.metainfo?.files ?? [], session.file) : [];
}

/** Subtitles as WebVTT. Each file is converted once, which takes a quarter of a second for the largest, and kept for a while. */
export class SubtitleTexts {
  readonly #clock: Clock;
  /** By torrent, file and time stamp of the film's beginning; the one that was not used for longest comes first. */
  readonly #kept = new Map<string, Uint8Array<ArrayBuffer>>();
  #keptBytes = 0;
  readonly #making = new Map<string, SharedTask<Uint8Array<ArrayBuffer>>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The WebVTT of `sidecar` in UTF-8, not to be changed; its file is fetched like any other part of the torrent. Rejects as
   * `ByteSource.read`, with `timeout`, or with the signal's reason.
   */
  async textOf(
    session: Pick<PlaybackSession, "identity" | "swarm" | "hls" | "signal">,
    { file, language }: Sidecar,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { swarm, hls } = session;
    const zeroPts90k = hls?.zeroPts90k ?? null;
    const key = `${session.identity.infohashHex}/${file.index}/${zeroPts90k}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept;
    }
    let task = this.#making.get(key);
    if (task === undefined || task.abandoned) {
      const made = task = new SharedTask(async (own) => {
        try {
          const text = await read(swarm, file, language, zeroPts90k, own);
          this.#keep(key, text);
          return text;
        } finally {
          if (this.#making.get(key) === made) this.#making.delete(key);
        }
      });
      this.#making.set(key, made);
    }
    const late = deadline(
      this.#clock,
      READ_TIMEOUT_MS,
      AbortSignal.any([signal, session.signal]),
      () => new MillraceError("timeout", `${file.name} did not come in time`),
    );
    try {
      return await task.wait(late.signal);
    } finally {
      late.cancel();
    }
  }

  #keep(key: string, text: Uint8Array<ArrayBuffer>): void {
    this.#kept.set(key, text);
    this.#keptBytes += text.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= length;
    }
  }
}

async function read(
  swarm: PlaybackSession["swarm"],
  file: Sidecar["file"],
  language: string | null,
  zeroPts90k: number | null,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = swarm.openReader(file.index, { readAheadBytes: 0 });
  try {
    const bytes = await reader.read(0, file.sizeBytes, { signal });
    return new TextEncoder().encode(renderWebVtt(readCues(await subtitlesAsUtf8(bytes, language)), zeroPts90k));
  } finally {
    reader.close();
  }
}
