/** The bodies that players read, made from a session: MPEG TS, HLS, or the file as it is. */
import { renderVodPlaylist } from "../media/hls/playlist.ts";
import type { SwarmReader } from "../swarm/types.ts";
import type { PlaybackSession } from "./session.ts";

/** Chunk of the file output, bytes: the size that costs an HTTP server least. */
const FILE_CHUNK_BYTES = 64 * 1024;

/** A body with byte positions. `sizeBytes` null = not known before it was read. */
export interface OutputBody {
  readonly sizeBytes: number | null;
  /** Equal exactly when the bytes are: what an ETag is made from. */
  readonly fingerprint: string;
  /** `[start, end)`; `end` null = to the end. */
  open(start: number, end: number | null): ReadableStream<Uint8Array>;
}

/** The MPEG TS of a session of output `ts`; null for others. */
export function tsBody(session: PlaybackSession): OutputBody | null {
  const layout = session.identity.output === "ts" ? session.presentation?.ts : undefined;
  if (layout === undefined) return null;
  return {
    sizeBytes: layout.sizeBytes,
    fingerprint: `${session.identity.infohashHex}/${session.file.index}/${layout.fingerprint}`,
    open: (start, end) => session.stream((source, signal) => layout.read(start, end, source, signal)),
  };
}

/** The original bytes of a session of output `file`; null for others. */
export function fileBody(session: PlaybackSession): OutputBody | null {
  if (session.identity.output !== "file") return null;
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
): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end;) {
    // Chunks begin at multiples of their size, so that readers of different ranges find the same ones.
    const next = Math.min(end, at - at % FILE_CHUNK_BYTES + FILE_CHUNK_BYTES);
    yield await source.read(at, next - at, { signal, shared: true });
    at = next;
  }
}

/** The playlist of a session of output `hls`; null for others. `segmentUrl` gives the address of segment n. */
export function manifestText(session: PlaybackSession, segmentUrl: (n: number) => string): string | null {
  if (session.identity.output !== "hls" || session.presentation === null) return null;
  return renderVodPlaylist(session.presentation.hls, segmentUrl);
}

/** A segment of a session of output `hls`; null when there is none of that number. */
export function segmentBody(
  session: PlaybackSession,
  n: number,
): { readonly sizeBytes: number | null; open(): ReadableStream<Uint8Array> } | null {
  const plan = session.presentation?.hls;
  if (plan === undefined || plan.segments[n] === undefined) return null;
  return {
    sizeBytes: plan.segmentBytes(n),
    open: () => session.stream((source, signal) => plan.readSegment(n, source, signal)),
  };
}
