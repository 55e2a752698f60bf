/** Opens a media file of any container: reads its first bytes and has the right reader read its index. */
import type { ByteSource } from "../bytes/source.ts";
import { MillraceError } from "../errors.ts";
import { sniffForeign } from "../bytes/foreign-container.ts";
import { detectPackets } from "../bytes/ts/packet-source.ts";
import { openForeign } from "./foreign/open-foreign.ts";
import { openAudio } from "./index/audio/open-audio.ts";
import { openMatroska } from "./index/mkv/open-matroska.ts";
import { openMp4 } from "./index/mp4/open-mp4.ts";
import { openTransportStream } from "./ts-file/open-ts.ts";
import { ConsiderateSource, IndexWork } from "./source/work.ts";
import { presentIndex } from "./presentation/presentation.ts";
import { type Container, SNIFF_BYTES, sniffContainer } from "../bytes/container.ts";
import { requireProportion } from "./model/plausible.ts";
import type { FaultLedger } from "./model/faults.ts";
import type { MediaIndex, MediaOpenOptions } from "./model/timeline.ts";
import { transcodeIndex } from "./transcode/transcode-index.ts";
import type { HlsPlan, Presentation, Rendition, Renditions, TsLayout } from "./model/types.ts";

/**
 * Reads the index of `source`, and none of the media beyond it. Returns what can be played. The cost is bounded, and
 * other work gets its turn in between. Rejects with `unsupported_media` (naming the container or codecs), `bad_media`
 * (damaged, or too much work), or the read's error.
 */
export async function openMedia(source: ByteSource, options: MediaOpenOptions): Promise<Presentation> {
  const work = new IndexWork(source, options.signal, {}, options.memory);
  return lasting(await present(work, options).finally(() => work.end()));
}

/** As it is kept, long after the swarm was left. A function of its own: closures made in `openMedia` would keep the source. */
function lasting(presentation: Presentation): Presentation {
  let plan: HlsPlan | null = null;
  let renditions: Renditions | null = null;
  const { faults, planRenditions } = presentation;
  return {
    ...presentation,
    ts: considerate(presentation.ts, faults),
    tsFrom: async (ms, from, signal) =>
      considerate(await working(from, signal, (work) => presentation.tsFrom(ms, work, signal)), faults),
    planHls: async (from, signal) => {
      const hls = await working(from, signal, (work) => presentation.planHls(work, signal));
      return plan ??= considerateHls(hls, faults);
    },
    ...planRenditions === undefined ? {} : {
      planRenditions: async (from: ByteSource, signal: AbortSignal) => {
        const { video, sounds } = renditions ?? await planRenditions(from, signal);
        const shared = (one: Rendition) => {
          return { ...one, plan: considerateHls(one.plan, faults, one.track.kind === "video" ? 1 : 0) };
        };
        return renditions ??= { video: shared(video), sounds: sounds.map(shared) };
      },
    },
  };
}

/** What `read` returns of an index that is read from `source`. */
async function working<T>(source: ByteSource, signal: AbortSignal, read: (work: IndexWork) => Promise<T>): Promise<T> {
  const work = new IndexWork(source, signal);
  try {
    return await read(work);
  } finally {
    work.end();
  }
}

/** Other work gets its turn while it is read, and `faults` hears of it when less comes than was promised. */
function considerate(ts: TsLayout, faults: FaultLedger): TsLayout {
  return {
    ...ts,
    read: (start, end, from, ...rest) => {
      const stop = end ?? ts.sizeBytes;
      const chunks = ts.read(start, end, new ConsiderateSource(from), ...rest);
      return stop === null ? chunks : counted(chunks, stop - start, () => faults.short("MPEG TS"));
    },
  };
}

/** As `considerate`. A segment of unknown length has something in it, unless it is sound alone: that may end early. */
function considerateHls(hls: HlsPlan, faults: FaultLedger, leastBytes = 1): HlsPlan {
  return {
    ...hls,
    readSegment: (n, media, ...rest) => {
      const chunks = hls.readSegment(n, new ConsiderateSource(media), ...rest);
      return counted(chunks, hls.segmentBytes(n) ?? leastBytes, () => faults.short(`segment ${n}`));
    },
  };
}

/** `chunks`; calls `onShort` if they end with fewer than `leastBytes`. */
async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  leastBytes: number,
  onShort: () => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes < leastBytes) onShort();
}

async function present(source: IndexWork, options: MediaOpenOptions): Promise<Presentation> {
  const length = Math.min(SNIFF_BYTES, source.sizeBytes);
  const head = await source.read(0, length, { signal: options.signal });
  const container = sniffContainer(head);
  if (container === "mpegts") return await openTransportStream(source, asTs(options));
  const foreign = container === null ? sniffForeign(head) : null;
  if (foreign !== null) return await presentIndex(await openForeign(foreign, source, options), options, source);
  if (container === null) {
    // Recordings may begin with other bytes than packets.
    if (await detectPackets(source, options.signal) !== null) return await openTransportStream(source, asTs(options));
    throw new MillraceError(
      "unsupported_media",
      "the container is none of MP4, Matroska, MPEG TS, AVI, FLV, MPEG PS, ASF, MP3, AAC, AC-3, FLAC, Ogg, WAV and others of sound",
    );
  }
  const index = await READERS[container](source, options);
  if (index.timeline.kind === "tabled") requireProportion(index.timeline, index.sourceBytes);
  return await presentIndex(await transcodeIndex(index, options, source), options, source);
}

/** `options` for a transport stream. Throws `unsupported_media` if they ask for fragmented MP4. */
function asTs(options: MediaOpenOptions): MediaOpenOptions {
  if (!options.fragmented) return options;
  throw new MillraceError(
    "unsupported_media",
    "no fragmented MP4 is made of a transport stream: ask for HLS of MPEG TS",
  );
}

/** Reads the index of a file. */
type Reader = (source: ByteSource, options: MediaOpenOptions) => Promise<MediaIndex>;

const audio = (container: Parameters<typeof openAudio>[0]): Reader => (source, options) =>
  openAudio(container, source, options);

/** The reader of each container; MPEG TS is played unchanged. */
const READERS: Readonly<Record<Exclude<Container, "mpegts">, Reader>> = {
  mp4: openMp4,
  matroska: openMatroska,
  mp3: audio("mp3"),
  aac: audio("aac"),
  ac3: audio("ac3"),
  flac: audio("flac"),
  ogg: audio("ogg"),
  wav: audio("wav"),
};
