/**
 * Opens Ogg (Opus, Vorbis) and WAV files with mediabunny, which can look up where their packets are. (It reads MP3, AAC and
 * FLAC too, but to find a packet there it reads all packets before it: 22 of 34 MB of a FLAC for a seek to two thirds.)
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import { type CountUnits, FaultLedger } from "../../model/faults.ts";
import type { MediaIndex, MediaOpenOptions, RunSample } from "../../model/timeline.ts";
import type { Track } from "../../model/types.ts";
import { foreignRuns, mostSamples } from "../audio/runs.ts";
import { HEAD_BYTES, type LibraryContainer, LibraryDemuxer, loadLibrary } from "./demuxer.ts";
import type { EncodedPacket, InputAudioTrack } from "./mediabunny.ts";
import { oggEndS } from "./ogg-end.ts";
import { oggPictures } from "./ogg-pictures.ts";
import { opusPacketS, opusPreSkipS } from "./opus.ts";

/** Most demuxers kept at the end of a run, ready for a player that continues there. */
const MAX_WAITING = 4;
/** A pause between two packets that is more than rounding, s. */
const GAP_S = 0.1;
/** Packets yielded at a time. */
const BATCH_PACKETS = 64;
/** Tolerance when times are compared, s: less than a sample. */
const EPSILON_S = 1e-6;

/** Matroska's name and bit depth of PCM by mediabunny's name (little-endian). */
const PCM: Readonly<Record<string, { readonly matroskaId: string; readonly bitDepth: number }>> = {
  "pcm-u8": { matroskaId: "A_PCM/INT/LIT", bitDepth: 8 },
  "pcm-s16": { matroskaId: "A_PCM/INT/LIT", bitDepth: 16 },
  "pcm-s24": { matroskaId: "A_PCM/INT/LIT", bitDepth: 24 },
  "pcm-s32": { matroskaId: "A_PCM/INT/LIT", bitDepth: 32 },
  "pcm-f32": { matroskaId: "A_PCM/FLOAT/IEEE", bitDepth: 32 },
  "pcm-f64": { matroskaId: "A_PCM/FLOAT/IEEE", bitDepth: 64 },
};

async function describe(track: InputAudioTrack): Promise<Track> {
  const [codec, config] = [await track.getCodec(), await track.getDecoderConfig()];
  const description = config?.description;
  const pcm = PCM[codec ?? ""];
  const base = {
    id: 1,
    kind: "audio",
    language: null,
    isDefault: true,
    width: null,
    height: null,
    sampleRate: await track.getSampleRate(),
    channels: await track.getNumberOfChannels(),
  } as const;
  if (pcm !== undefined) return { ...base, codec: "pcm", codecId: codec!, codecPrivate: null, ...pcm };
  if (codec !== "opus" && codec !== "vorbis") {
    return { ...base, codec: "other", codecId: codec ?? "unknown sound", codecPrivate: null };
  }
  const codecPrivate = description instanceof Uint8Array ? description.slice() : null;
  return { ...base, codec, codecId: codec === "opus" ? "Opus" : "Vorbis", codecPrivate };
}

/**
 * Opens an Ogg or WAV file. Rejects with `bad_media`, `unsupported_media` (for sound other than Opus, Vorbis and PCM), or as
 * the source does.
 */
export async function openByLibrary(
  source: ByteSource,
  container: LibraryContainer,
  options: Pick<MediaOpenOptions, "signal" | "segmentTargetMs">,
): Promise<MediaIndex> {
  const { signal } = options;
  const library = await loadLibrary();
  const head = await source.read(0, Math.min(HEAD_BYTES, source.sizeBytes), { signal });
  const make = () => new LibraryDemuxer(library, container, source.sizeBytes, head);
  const demuxer = make();
  try {
    const audio = await demuxer.track(source, signal);
    if (audio === null) throw unknownSound("other sound than Opus, Vorbis and PCM");
    const track = await demuxer.ask(source, signal, () => describe(audio));
    if (track.codec === "other") throw unknownSound(track.codecId);
    const sampleRate = track.sampleRate ?? 0;
    if (!(sampleRate > 0 && (track.channels ?? 0) > 0)) throw new MillraceError("bad_media", "the sound has no rate");
    const first = await demuxer.firstPacket(source, signal);
    if (first === null) throw new MillraceError("bad_media", "the file has no sound");
    const preSkipS = track.codec === "opus" ? opusPreSkipS(track.codecPrivate) : 0;
    const told = container === "ogg" ? await oggEndS(source, audio.id, track, signal) : null;
    const endS = told ?? await demuxer.ask(source, signal, () => audio.computeDuration());
    // A stream that was cut out of a longer one does not begin at 0.
    const startS = first.timestamp;
    const durationS = Math.max(EPSILON_S, Math.min(mostSamples(source.sizeBytes, 1), endS - startS));
    const file: LibraryFile = { make, startS, preSkipS, durationS, isOpus: track.codec === "opus" };
    return {
      container: "other",
      // The sound is the first track: runs contain only its packets.
      tracks: [track, ...(container === "ogg" ? oggPictures(head) : [])],
      durationMs: durationS * 1000,
      sourceBytes: source.sizeBytes,
      warnings: [],
      timeline: libraryTimeline(file, sampleRate, source.sizeBytes, options.segmentTargetMs),
    };
  } finally {
    demuxer.close();
  }
}

/** The error for sound that can only be converted, when ffmpeg is missing. */
export function unknownSound(name: string): MillraceError {
  return new MillraceError(
    "unsupported_media",
    `MPEG TS cannot carry ${name}: install ffmpeg, which converts it to AAC`,
  );
}

/** What reading a run needs. */
interface LibraryFile {
  readonly make: () => LibraryDemuxer;
  /** Time of the first packet in the file, which becomes 0. */
  readonly startS: number;
  /** Added to the times of Opus, so that they count the skipped beginning (RFC 9559, CodecDelay). */
  readonly preSkipS: number;
  readonly durationS: number;
  readonly isOpus: boolean;
}

function libraryTimeline(file: LibraryFile, sampleRate: number, sourceBytes: number, targetMs: number | undefined) {
  const totalSamples = Math.max(1, Math.round(file.durationS * sampleRate));
  const { runSamples, count, runs } = foreignRuns(totalSamples, sampleRate, sourceBytes, targetMs);
  const faults = new FaultLedger();
  // Its byte position is not known, and only distinguishes it from others.
  const gapAt = (timeS: number) => faults.gap(sourceBytes * (timeS - file.startS) / file.durationS);
  const waiting = new Map<number, { readonly demuxer: LibraryDemuxer; readonly packet: EncodedPacket }>();
  const keep = (run: number, demuxer: LibraryDemuxer, packet: EncodedPacket) => {
    waiting.get(run)?.demuxer.close();
    waiting.delete(run);
    waiting.set(run, { demuxer, packet });
    for (const [oldest, { demuxer }] of waiting) {
      if (waiting.size <= MAX_WAITING) return;
      waiting.delete(oldest);
      demuxer.close();
    }
  };
  return {
    kind: "streamed" as const,
    runs,
    faults,
    async *readRun(
      run: number,
      _wanted: ReadonlySet<number>,
      source: ByteSource,
      signal: AbortSignal,
      _lender?: unknown,
      held?: CountUnits,
    ) {
      const fromS = file.startS + run * runSamples / sampleRate;
      const toS = run === count - 1 ? Infinity : fromS + runSamples / sampleRate;
      const kept = waiting.get(run);
      waiting.delete(run);
      const demuxer = kept?.demuxer ?? file.make();
      let isKept = false;
      try {
        let packet = kept?.packet ?? await seek(demuxer, run === 0 ? null : fromS, source, signal);
        let out: RunSample[] = [];
        // mediabunny reports no timestamps for skipped leading frames; treat them as 0.
        let skippedS = -file.preSkipS;
        let endS = Infinity;
        for (; packet !== null && packet.timestamp < toS - EPSILON_S;) {
          const isSkipped = file.isOpus && packet.timestamp === 0;
          const timeS: number = isSkipped ? skippedS : packet.timestamp;
          skippedS += opusPacketS(packet.data);
          if (packet.timestamp >= fromS - EPSILON_S) {
            out.push(sampleAt(timeS - file.startS + file.preSkipS, packet.data));
            held?.(0, 1);
          }
          endS = packet.timestamp + packet.duration;
          packet = await demuxer.nextPacket(packet, source, signal);
          if (packet !== null && packet.timestamp > endS + GAP_S) gapAt(packet.timestamp);
          if (out.length < BATCH_PACKETS) continue;
          yield out;
          out = [];
        }
        if (packet !== null) {
          keep(run + 1, demuxer, packet);
          isKept = true;
        }
        if (out.length > 0) yield out;
        // Damaged packets may count as shorter ones: what comes after them is early, and ends before the file says.
        if (packet === null && endS < file.startS + file.durationS - GAP_S) gapAt(endS);
      } finally {
        if (!isKept) demuxer.close();
      }
    },
  };
}

async function seek(
  demuxer: LibraryDemuxer,
  timeS: number | null,
  source: ByteSource,
  signal: AbortSignal,
): Promise<EncodedPacket | null> {
  if (await demuxer.track(source, signal) === null) throw new MillraceError("bad_media", "the file has no sound");
  if (timeS === null) return await demuxer.firstPacket(source, signal);
  return await demuxer.packetAt(timeS, source, signal);
}

function sampleAt(timeS: number, data: Uint8Array): RunSample {
  const pts90k = Math.round(Math.max(0, timeS) * 90_000);
  return { track: 0, pts90k, dts90k: pts90k, keyframe: true, data };
}
