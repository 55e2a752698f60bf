/**
 * WAV files of coded sound (A-law, µ-law, ADPCM, GSM). Their blocks have one size and one number of samples, so any
 * place is found at once. ffmpeg gets the blocks as Matroska stores them, with the file's own description.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import type { MediaIndex, MediaOpenOptions, RunSample } from "../../model/timeline.ts";
import type { Track } from "../../model/types.ts";
import { WAV_CODINGS } from "./wav-format.ts";
import { foreignRuns, mostSamples, ticksAt } from "./runs.ts";

/** Formats whose blocks have a number of samples that is stated or follows from their size. */
const G711 = [6, 7];
const IN_BLOCKS = [2, 0x11, 0x31];
/** Samples in a block of G.711 as we cut it: 20 to 130 ms at the usual rates. */
const G711_SAMPLES = 1024;
/** Size of WAVEFORMAT, and the position after it of the number of samples per block. */
const FORMAT_BYTES = 16;
const BLOCK_SAMPLES_AT = 18;
/** Longest description that is accepted, bytes: ADPCM has 50. */
const MAX_FORMAT_BYTES = 1024;
/** Chunks that are read before the sound: tags and pictures. */
const MAX_CHUNKS = 64;
/** Blocks read at a time, bytes. */
const READ_BYTES = 128 * 1024;

/** What describes the sound. */
interface Format {
  readonly tag: number;
  readonly channels: number;
  readonly sampleRate: number;
  readonly block: { readonly samples: number; readonly bytes: number };
  readonly bytes: Uint8Array;
}

function readFormat(bytes: Uint8Array): Format | null {
  if (bytes.length < FORMAT_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [tag, channels, sampleRate, align] = [
    view.getUint16(0, true),
    view.getUint16(2, true),
    view.getUint32(4, true),
    view.getUint16(12, true),
  ];
  if (channels === 0 || channels > 8 || sampleRate < 1000 || sampleRate > 384_000 || align === 0) return null;
  const told = bytes.length >= BLOCK_SAMPLES_AT + 2 ? view.getUint16(BLOCK_SAMPLES_AT, true) : 0;
  const block = G711.includes(tag)
    ? { samples: G711_SAMPLES, bytes: G711_SAMPLES * channels }
    : { samples: told, bytes: align };
  return !G711.includes(tag) && !IN_BLOCKS.includes(tag) || block.samples === 0
    ? null
    : { tag, channels, sampleRate, block, bytes };
}

/** Opens a file of these formats; null when its sound is of another kind. Rejects with `bad_media`, or as the source does. */
export async function openWavBlocks(
  source: ByteSource,
  { signal, segmentTargetMs }: Pick<MediaOpenOptions, "signal" | "segmentTargetMs">,
): Promise<MediaIndex | null> {
  let format: Format | null = null;
  for (let at = 12, chunks = 0; at + 8 <= source.sizeBytes && chunks < MAX_CHUNKS; chunks++) {
    const header = await source.read(at, 8, { signal });
    const size = new DataView(header.buffer, header.byteOffset).getUint32(4, true);
    const name = String.fromCharCode(...header.subarray(0, 4));
    at += 8;
    if (name === "fmt ") {
      const length = Math.min(size, MAX_FORMAT_BYTES, source.sizeBytes - at);
      format = readFormat((await source.read(at, length, { signal })).slice());
      if (format === null) return null;
    } else if (name === "data" && format !== null) {
      return indexOf(
        format,
        at,
        Math.min(size === 0 ? Infinity : size, source.sizeBytes - at),
        source,
        segmentTargetMs,
      );
    }
    at += size + (size & 1);
  }
  if (format === null) return null;
  throw new MillraceError("bad_media", "the file has no sound");
}

function indexOf(
  { tag, channels, sampleRate, block, bytes }: Format,
  dataAt: number,
  dataBytes: number,
  source: ByteSource,
  segmentTargetMs: number | undefined,
): MediaIndex {
  const blocks = Math.ceil(dataBytes / block.bytes);
  const totalSamples = Math.min(mostSamples(source.sizeBytes, sampleRate), blocks * block.samples);
  if (blocks === 0) throw new MillraceError("bad_media", "the file has no sound");
  const { runSamples, count, runs } = foreignRuns(totalSamples, sampleRate, source.sizeBytes, segmentTargetMs);
  const firstBlock = (run: number) => Math.min(blocks, Math.ceil(run * runSamples / block.samples));
  const track: Track = {
    id: 1,
    kind: "audio",
    codec: "other",
    codecId: WAV_CODINGS[tag]!,
    language: null,
    isDefault: true,
    codecPrivate: bytes,
    matroskaId: "A_MS/ACM",
    width: null,
    height: null,
    sampleRate,
    channels,
    bitDepth: new DataView(bytes.buffer, bytes.byteOffset).getUint16(14, true),
  };
  return {
    container: "other",
    tracks: [track],
    durationMs: totalSamples * 1000 / sampleRate,
    sourceBytes: source.sizeBytes,
    warnings: [],
    timeline: {
      kind: "streamed",
      runs,
      async *readRun(run, _wanted, from, signal, _lender, held) {
        const end = run === count - 1 ? blocks : firstBlock(run + 1);
        held?.(0, Math.max(0, end - firstBlock(run)));
        const most = Math.max(1, Math.floor(READ_BYTES / block.bytes));
        for (let next = firstBlock(run); next < end;) {
          const many = Math.min(most, end - next);
          const offset = next * block.bytes;
          const data = await from.read(dataAt + offset, Math.min(many * block.bytes, dataBytes - offset), { signal });
          const samples: RunSample[] = [];
          for (let i = 0; i < many; i++) {
            const pts90k = ticksAt((next + i) * block.samples, sampleRate);
            const part = data.slice(i * block.bytes, (i + 1) * block.bytes);
            samples.push({ track: 0, pts90k, dts90k: pts90k, keyframe: true, data: part });
          }
          next += many;
          yield samples;
        }
      },
    },
  };
}
