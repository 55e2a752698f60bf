/** Opens a media file of any container: looks at its first bytes, has the right reader read its index. */
import type { ByteSource } from "../bytes/source.ts";
import { MillraceError } from "../errors.ts";
import { openMatroska } from "./index/mkv/open.ts";
import { openMp4 } from "./index/mp4/open.ts";
import { openTransportStream } from "./index/ts/open.ts";
import { presentIndex } from "./presentation.ts";
import { type Container, SNIFF_BYTES, sniffContainer } from "./sniff.ts";
import type { OpenOptions } from "./timeline.ts";
import { asksForAac } from "./transcode/choice.ts";
import { transcodeIndex } from "./transcode/transcode-index.ts";
import type { Presentation } from "./types.ts";

/**
 * Reads the index of `source`, nothing of the media beyond it, and answers what can be played of it. Rejects with
 * `unsupported_media` (naming the container or codecs), `bad_media`, or the read's error.
 */
export async function openMedia(source: ByteSource, options: OpenOptions): Promise<Presentation> {
  const length = Math.min(SNIFF_BYTES, source.sizeBytes);
  const head = await source.read(0, length, { signal: options.signal });
  const container = sniffContainer(head);
  if (container === null) {
    throw new MillraceError("unsupported_media", "the container is none of MP4, Matroska and MPEG TS");
  }
  return await OPENERS[container](source, options);
}

const OPENERS: Readonly<Record<Container, (source: ByteSource, options: OpenOptions) => Promise<Presentation>>> = {
  mp4: async (source, options) => presentIndex(await transcodeIndex(await openMp4(source, options), options), options),
  matroska: async (source, options) =>
    presentIndex(await transcodeIndex(await openMatroska(source, options), options), options),
  mpegts: async (source, options) => {
    const presentation = await openTransportStream(source, options);
    const { transcode } = options;
    const asked = transcode
      ? presentation.outputTracks.filter((track) => asksForAac(track, transcode)).map(({ codec }) => codec)
      : [];
    if (asked.length === 0) return presentation;
    const warning = `audio of transport streams is not made into AAC: ${[...new Set(asked)].join(", ")} stays`;
    return { ...presentation, warnings: [warning, ...presentation.warnings] };
  },
};
