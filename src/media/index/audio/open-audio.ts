/** Opens audio files other than MP4, Matroska and MPEG TS. */
import { id3TagBytes } from "../../../bytes/audio-frames.ts";
import { type Container, SNIFF_BYTES, sniffContainer } from "../../../bytes/container.ts";
import { foreignOf } from "../../../bytes/foreign-container.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { hasCode } from "../../../errors.ts";
import { openForeign } from "../../foreign/open-foreign.ts";
import type { MediaIndex, MediaOpenOptions } from "../../model/timeline.ts";
import { openByLibrary, unknownSound } from "../library/open-library.ts";
import { openFlac } from "./flac.ts";
import { CUT_OFF, openFrames } from "./frames.ts";
import { openWavBlocks } from "./wav-blocks.ts";
import { wavCoding } from "./wav-format.ts";

/** Containers that hold only sound. */
export type AudioContainer = Exclude<Container, "mp4" | "matroska" | "mpegts">;

/** Bytes before those that the size of a WAV file counts, and the least size that means an unknown one. */
const RIFF_HEADER_BYTES = 8;
const UNKNOWN_RIFF_BYTES = 0x7fff0000;
/** Most ID3v2 tags before the sound: some programs add one without looking for another. */
const MAX_TAGS = 16;

/** Reads the index if there is one. Rejects with `bad_media`, `unsupported_media`, or as the source does. */
export async function openAudio(
  sniffed: AudioContainer,
  source: ByteSource,
  options: MediaOpenOptions,
): Promise<MediaIndex> {
  const { container, position } = sniffed === "mp3" || sniffed === "flac"
    ? await behindTags(source, options.signal)
    : { container: sniffed, position: 0 };
  switch (container) {
    case "mp3":
    case "aac":
    case "ac3":
      return await openFrames(source, container, options);
    case "flac":
      return await openFlac(source, position, options);
    case "ogg":
    case "wav":
      try {
        if (container === "wav") {
          const blocks = await openWavBlocks(source, options);
          if (blocks === null) await requirePcm(source, options.signal);
          const index = blocks ?? await openByLibrary(source, container, options);
          return await isCutOff(source, options.signal) ? { ...index, warnings: [CUT_OFF, ...index.warnings] } : index;
        }
        return await openByLibrary(source, container, options);
      } catch (error) {
        const { foreignReader: reader, signal } = options;
        if (!hasCode(error, "unsupported_media") || !reader || !await reader.isAvailable(signal)) throw error;
        return await openForeign(foreignOf(container), source, options);
      }
  }
}

/** Whether a WAV file is shorter than its header says. Programs that could not know its length wrote one near 2 or 4 GiB. */
async function isCutOff(source: ByteSource, signal: AbortSignal): Promise<boolean> {
  const head = await source.read(0, RIFF_HEADER_BYTES, { signal });
  const told = new DataView(head.buffer, head.byteOffset).getUint32(4, true);
  return told < UNKNOWN_RIFF_BYTES && told + RIFF_HEADER_BYTES > source.sizeBytes;
}

/** Throws `unsupported_media` for a WAV file of anything but PCM. */
async function requirePcm(source: ByteSource, signal: AbortSignal): Promise<void> {
  const coding = wavCoding(await source.read(0, Math.min(SNIFF_BYTES, source.sizeBytes), { signal }));
  if (coding !== null) throw unknownSound(coding);
}

/** The format of the data after the leading ID3v2 tags, and its position; `mp3` when unrecognised. */
async function behindTags(
  source: ByteSource,
  signal: AbortSignal,
): Promise<{ readonly container: AudioContainer; readonly position: number }> {
  let position = 0;
  for (let tags = 0; tags <= MAX_TAGS && position < source.sizeBytes; tags++) {
    const length = Math.min(SNIFF_BYTES, source.sizeBytes - position);
    const head = await source.read(position, length, { signal });
    const tag = id3TagBytes(head, 0);
    if (tag === 0) {
      const container = sniffContainer(head);
      if (container === "flac" || container === "aac") return { container, position };
      break;
    }
    position += tag;
  }
  return { container: "mp3", position };
}
