/** The bodies that players read, made from a session: MPEG TS, HLS, or the original file. */
import type { TsLayout } from "../media/model/types.ts";
import { renderVodPlaylist } from "../media/hls/playlist.ts";
import type { SwarmReader } from "../swarm/types.ts";
import { skipBytes } from "./shared-output.ts";
import type { PlaybackSession } from "./session.ts";
import type { LowLatencyAsk } from "./live/low-latency.ts";
import type { AnySession } from "./sessions.ts";

/**
 * Chunk of the file output, bytes. With 200 clients of Node's server a gigabyte takes a fifth less work than in chunks
 * of half the size, and a third less than in quarters. In larger chunks it takes more again.
 */
const FILE_CHUNK_BYTES = 256 * 1024;
/** While nothing of a chunk has arrived, this much of it is awaited, or what there is of it in one piece. */
const WAITED_BYTES = 64 * 1024;

/** A body with byte positions. `sizeBytes` null = not known before it was read. */
export interface OutputBody {
  readonly sizeBytes: number | null;
  /** Equal exactly when the bytes are equal: an ETag is made from it. */
  readonly fingerprint: string;
  /** `[start, end)`; `end` null = to the end. */
  open(start: number, end: number | null): ReadableStream<Uint8Array>;
}

/** The MPEG TS of a file's session of output `ts` that is ready; null for others. */
export function tsBody(session: AnySession): OutputBody | null {
  if (session.kind !== "file" || session.identity.output !== "ts" || session.presentation === null) return null;
  return layoutBody(session, session.presentation.ts);
}

/** As `tsBody`, from `fromMs` on. Rejects as `Presentation.tsFrom`. */
export async function tsBodyFrom(session: AnySession, fromMs: number, signal: AbortSignal): Promise<OutputBody | null> {
  if (fromMs === 0 || session.kind !== "file" || session.identity.output !== "ts") return tsBody(session);
  const layout = await session.tsFrom(fromMs, signal);
  return layout === null ? null : layoutBody(session, layout);
}

/** The init segment of a session whose segments are fragmented MP4; null for others. */
export function initBody(session: AnySession): OutputBody | null {
  const init = session.kind === "file" ? session.hls?.fragmented?.init : undefined;
  if (session.kind !== "file" || init === undefined) return null;
  return bytesBody(init, `${fingerprintOf(session)}/init`);
}

/** The init segment of a broadcast that begins with segment `first`; null when no playlist named it. */
export function liveInitBody(session: AnySession, first: number): OutputBody | null {
  const init = session.kind === "live" ? session.initSegment(first) : null;
  if (init === null) return null;
  return bytesBody(init, `${session.identity.infohashHex}/${first}/${session.preferredAudioLanguage}/init`);
}

/** A body of bytes that have arrived. */
export function bytesBody(bytes: Uint8Array, fingerprint: string): OutputBody {
  const part = (start: number, end: number | null) => bytes.slice(start, end ?? bytes.length);
  return { sizeBytes: bytes.length, fingerprint, open: (start, end) => new Blob([part(start, end)]).stream() };
}

/** What the fingerprints of all parts of a session that is ready begin with. */
export function fingerprintOf(session: PlaybackSession): string {
  const { identity, file, presentation } = session;
  return `${identity.infohashHex}/${file.index}/${presentation!.ts.fingerprint}`;
}

function layoutBody(session: PlaybackSession, layout: TsLayout): OutputBody {
  return {
    sizeBytes: layout.sizeBytes,
    fingerprint: `${session.identity.infohashHex}/${session.file.index}/${layout.fingerprint}`,
    open(start, end) {
      const { copiedFrom, sizeBytes } = layout;
      // A body without a length can't be begun in the middle, where a reader that fell behind the kept data would have
      // to continue.
      if (sizeBytes === null) return session.stream((source, signal) => layout.read(start, end, source, signal));
      if (copiedFrom === undefined) {
        return session.streamShared(
          layout,
          "ts",
          [start, end],
          (offset, ...from) => layout.read(offset, null, ...from),
        );
      }
      const last = copiedFrom + (end ?? sizeBytes);
      return session.stream((source, signal) => copyFile(source, copiedFrom + start, last, signal, layout.watch?.()));
    },
  };
}

/** The original bytes of a session of output `file`; null for others. */
export function fileBody(session: AnySession): OutputBody | null {
  if (session.kind !== "file" || session.identity.output !== "file") return null;
  const { sizeBytes } = session.file;
  return {
    sizeBytes,
    fingerprint: `${session.identity.infohashHex}/${session.file.index}`,
    open: (start, end) => session.stream((source, signal) => copyFile(source, start, end ?? sizeBytes, signal)),
  };
}

async function* copyFile(
  source: SwarmReader,
  start: number,
  end: number,
  signal: AbortSignal,
  watch?: (bytes: Uint8Array, at: number) => void,
): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end;) {
    // Chunks begin at multiples of their size, so that readers of different ranges find the same ones.
    const chunkEnd = Math.min(end, at - at % FILE_CHUNK_BYTES + FILE_CHUNK_BYTES);
    const here = source.availableFrom(at, chunkEnd - at);
    // What crosses into the next piece would wait for that as well: after a seek, twice the time to the first byte.
    const next = Math.min(chunkEnd, here > 0 ? at + here : Math.min(at + WAITED_BYTES, source.pieceEnd(at)));
    const bytes = await source.read(at, next - at, { signal, shared: true });
    watch?.(bytes, at);
    yield bytes;
    at = next;
  }
}

/**
 * The playlist of a session of output `hls`: of a file once the session is ready, of a broadcast once there is a
 * segment; null for others. `segmentUrl` gives the address of segment n and of the init segment, `fromMs` where players of a file should begin, `initUrl` and `low` as of
 * `LiveSession.playlist`, `isCut` as of `renderVodPlaylist`.
 * Rejects with `timeout` or the signal's reason.
 */
export async function manifestText(
  session: AnySession,
  segmentUrl: (n: number | "init") => string,
  signal: AbortSignal,
  fromMs = 0,
  initUrl?: (first: number) => string,
  isCut = false,
  low?: LowLatencyAsk,
): Promise<string | null> {
  if (session.kind === "live") return await session.playlist(segmentUrl, signal, initUrl, null, low);
  return session.hls === null ? null : renderVodPlaylist(session.hls, segmentUrl, fromMs, isCut);
}

/** A segment, whole or a range of it. */
export interface SegmentBody {
  /** Exact length, bytes; null = not known before it was made. */
  readonly sizeBytes: number | null;
  /** As in `OutputBody`; null: it has none. */
  readonly fingerprint: string | null;
  open(start?: number, end?: number | null): ReadableStream<Uint8Array>;
}

/** A segment of a session of output `hls`, of a broadcast in the given format; null when there is none of that number. */
export function segmentBody(session: AnySession, n: number, isFragmented = false): SegmentBody | null {
  if (session.kind === "live") {
    const segment = session.segment(n);
    if (segment === null) return null;
    return { sizeBytes: null, fingerprint: null, open: () => session.openSegment(segment, isFragmented) };
  }
  const plan = session.hls;
  const segment = plan?.segments[n];
  if (plan === null || segment === undefined) return null;
  const sizeBytes = plan.segmentBytes(n);
  return {
    sizeBytes,
    fingerprint: plan.fragmented === undefined ? null : `${fingerprintOf(session)}/${n}`,
    open: (start = 0, end = null) =>
      session.streamShared(
        plan,
        String(n),
        [start, end],
        (offset, ...from) => skipBytes(plan.readSegment(n, ...from), offset),
        segment.durationMs / 1000,
      ),
  };
}
