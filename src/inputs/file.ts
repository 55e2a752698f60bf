/** A file, played as if it were live: over and over, or once. */
import { sleep } from "../bytes/deadline.ts";
import type { ByteSource, ReadOptions } from "../bytes/source.ts";
import { abortError, type ErrorCode, MillraceError } from "../errors.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import { TsResync } from "../bytes/ts/resync.ts";
import { detectPackets, readPackets } from "../bytes/ts/packet-source.ts";
import { openMedia } from "../media/open-media.ts";
import { SNIFF_BYTES, sniffContainer } from "../bytes/container.ts";
import { FfmpegEncoder } from "../media/transcode/ffmpeg.ts";
import type { Presentation } from "../media/model/types.ts";
import type { FileHandle, FilePort } from "../ports.ts";
import { reasonOf } from "./input.ts";
import { type Pace, paced } from "./pacer.ts";
import { inPackets } from "./packets.ts";
import type { SourcePorts } from "./ports.ts";
import { RETRY_FIRST_MS, RETRY_MOST_MS } from "./retry.ts";
import { TsLooper } from "./ts-looper.ts";

/** Packets read at once: 96 KiB. */
const READ_PACKETS = 512;
/** Real time; data leaves when it is due. */
const REAL_TIME: Pace = { leadMs: 0, rate: () => 1, needsClock: true };
/** Sound that MPEG TS cannot carry becomes AAC; the rest is unchanged. */
const NEEDED_ALONE = { mp3: false, ac3: false };
/** Deadline for reading the file before the broadcast begins, ms: a network drive may hang. */
export const OPEN_TIMEOUT_MS = 30_000;

/** Failures of a file that was read before: the drive fails, or the file is being replaced. */
const MENDABLE: ReadonlySet<ErrorCode> = new Set(["io", "not_found"]);

/** A file that can be broadcast. */
export interface FileInput {
  /** Reads it from its beginning. */
  events(signal: AbortSignal): AsyncGenerator<LiveInputEvent, void>;
  /** Mean rate of the transport stream made from it, bytes/s; null when it is not known. */
  readonly bytesPerS: number | null;
}

/** Whole passes over the file, each again from its beginning, in chunks of any size. */
type Passes = (source: ByteSource, signal: AbortSignal) => AsyncIterable<Uint8Array>;

/** Bytes of an open file. */
export class FileSource implements ByteSource {
  readonly sizeBytes: number;
  readonly #handle: FileHandle;

  constructor(handle: FileHandle, sizeBytes: number) {
    this.#handle = handle;
    this.sizeBytes = sizeBytes;
  }

  async read(offset: number, length: number, { signal }: ReadOptions): Promise<Uint8Array> {
    if (signal.aborted) throw abortError(signal);
    const bytes = new Uint8Array(length);
    if (offset < 0 || await this.#handle.read(bytes, offset) !== length) {
      throw new MillraceError("io", "the file became shorter while it was read");
    }
    return bytes;
  }
}

/**
 * Examines a file. MPEG TS (188, 192 and 204 bytes) is sent unchanged except for its times. MP4 and Matroska are laid
 * out as a transport stream, whose sound is converted to AAC if the stream cannot carry it and ffmpeg is on the PATH.
 * Returns null for a file that only ffmpeg may know. Rejects with `not_found`, `io`, `unsupported_media`.
 */
export async function openFile(
  ports: Pick<SourcePorts, "clock" | "files" | "log" | "processes">,
  path: string,
  options: { readonly once: boolean; readonly signal: AbortSignal },
): Promise<FileInput | null> {
  const { files, clock, log, processes } = ports;
  const looked = await withSource(files, path, async (source) => {
    const { signal } = options;
    const format = await detectPackets(source, signal);
    if (format !== null) {
      const passes: Passes = async function* (now, until) {
        for (let first = 0; first < format.packetCount; first += READ_PACKETS) {
          yield await readPackets(format, now, first, READ_PACKETS, until);
        }
      };
      return { passes, bytesPerS: await transportRate(source, path, signal).catch(() => null) };
    }
    const head = await source.read(0, Math.min(SNIFF_BYTES, source.sizeBytes), { signal });
    if (sniffContainer(head) === null) return null;
    const audioEncoder = new FfmpegEncoder(processes, clock);
    const presentation = await openMedia(source, {
      fileName: path,
      signal,
      fragmented: false,
      transcode: NEEDED_ALONE,
      audioEncoder,
    });
    requirePicture(presentation, path);
    for (const warning of presentation.warnings) log.log("warn", `${path}: ${warning}`);
    return { passes: presentationPasses(presentation), bytesPerS: layoutRate(presentation) };
  });
  if (looked === null) return null;
  return {
    events: (signal) =>
      paced(
        inPackets(loop(ports, path, looked.passes, options.once, signal)),
        clock,
        { ...REAL_TIME, bytesPerS: looked.bytesPerS },
        signal,
      ),
    bytesPerS: looked.bytesPerS,
  };
}

/** A film must not be broadcast as sound alone because its picture cannot be carried. */
function requirePicture({ tracks, outputTracks }: Presentation, path: string): void {
  const isVideo = ({ kind }: { kind: string }) => kind === "video";
  const picture = tracks.find(isVideo);
  if (picture === undefined || outputTracks.some(isVideo)) return;
  const codec = picture.codec === "other" ? picture.codecId : picture.codec;
  const hint = "make it H.264 or HEVC first, with ffmpeg: -c:v libx264";
  throw new MillraceError(
    "unsupported_media",
    `the picture of ${path} is ${codec}, which MPEG TS cannot carry: ${hint}`,
  );
}

function presentationPasses({ ts }: Presentation): Passes {
  return async function* (source, signal) {
    const resync = new TsResync();
    for await (const chunk of ts.read(0, null, source, signal)) {
      for (const { packets } of resync.push(chunk)) yield packets;
    }
  };
}

/** Mean rate of a transport stream by its first and last times; null if it has none. */
async function transportRate(source: ByteSource, path: string, signal: AbortSignal): Promise<number | null> {
  const { planHls } = await openMedia(source, { fileName: path, signal });
  const last = (await planHls(source, signal)).segments.at(-1);
  const durationMs = last === undefined ? 0 : last.startMs + last.durationMs;
  return durationMs > 0 ? source.sizeBytes * 1000 / durationMs : null;
}

function layoutRate({ ts, durationMs, bytesPerSecond }: Presentation): number | null {
  if (ts.sizeBytes === null || durationMs === null || durationMs <= 0) return bytesPerSecond;
  return ts.sizeBytes * 1000 / durationMs;
}

/** Endless passes; a drive that goes away is awaited. */
async function* loop(
  { files, clock }: Pick<SourcePorts, "clock" | "files">,
  path: string,
  passes: Passes,
  once: boolean,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  const looper = new TsLooper();
  for (let pauseMs = RETRY_FIRST_MS;; pauseMs = Math.min(2 * pauseMs, RETRY_MOST_MS)) {
    try {
      const handle = await files.open(path, "read");
      try {
        const source = new FileSource(handle, (await handle.info()).sizeBytes);
        do {
          yield* onePass(passes(source, signal), looper, path);
          pauseMs = RETRY_FIRST_MS;
        } while (!once);
        return;
      } finally {
        await handle.close();
      }
    } catch (error) {
      if (signal.aborted || once || !MENDABLE.has((error as MillraceError).code)) throw error;
      yield { kind: "lost", reason: reasonOf(error) };
      looper.endPass();
      await sleep(clock, pauseMs, signal);
    }
  }
}

async function* onePass(
  pass: AsyncIterable<Uint8Array>,
  looper: TsLooper,
  path: string,
): AsyncGenerator<LiveInputEvent, void> {
  let sentBytes = 0;
  for await (const packets of pass) {
    const bytes = looper.push(packets);
    sentBytes += bytes.length;
    if (bytes.length > 0) yield { kind: "data", bytes };
  }
  const rest = looper.endPass();
  if (rest.length > 0) yield { kind: "data", bytes: rest };
  if (sentBytes === 0) throw new MillraceError("bad_media", `${path} holds no stream`);
}

async function withSource<T>(files: FilePort, path: string, use: (source: ByteSource) => Promise<T>): Promise<T> {
  const { isDirectory, sizeBytes } = await files.info(path);
  if (isDirectory) throw new MillraceError("config", `--source: ${path} is a directory`);
  const handle = await files.open(path, "read");
  try {
    return await use(new FileSource(handle, sizeBytes));
  } finally {
    await handle.close();
  }
}
