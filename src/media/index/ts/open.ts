/**
 * MPEG TS files: 188-byte packets, M2TS (192) and with parity (204). The TS output is the file's own packets, unchanged
 * and stripped of what is stored around them: the file already is what a multiplexer made, with its clock and tables,
 * so its length is known from its size alone and any range is plain arithmetic. HLS segments are cut from it.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import { readTransportSegment, type SegmentPlace } from "../../cut-ts/segment.ts";
import { targetDurationS } from "../../hls/plan.ts";
import { DEFAULT_SEGMENT_TARGET_MS } from "../../hls/plan.ts";
import { sameLanguage } from "../../language.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import type { OpenOptions } from "../../timeline.ts";
import type { HlsPlan, HlsSegment, Presentation, Track } from "../../types.ts";
import { findAccessPoint } from "./access-search.ts";
import { type CutPlan, planTransportCuts } from "./cut-plan.ts";
import { detectPackets, type PacketFormat, readPackets } from "./packet-source.ts";
import { type ChosenProgram, findProgram } from "./programs.ts";

/** Part of the fingerprint: raise it whenever the bytes of a segment or of the TS change. */
const CUTTER_VERSION = 1;
/** Packets read at a time, about 256 KiB, and given away at a time, just under 64 KiB. */
const READ_PACKETS = 1392;
const CHUNK_PACKETS = 348;

async function* readTs(
  format: PacketFormat,
  start: number,
  end: number,
  source: ByteSource,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end;) {
    const first = Math.floor(at / PACKET_BYTES);
    const last = Math.ceil(Math.min(end, (first + READ_PACKETS) * PACKET_BYTES) / PACKET_BYTES);
    const bytes = await readPackets(format, source, first, last - first, signal);
    const base = first * PACKET_BYTES;
    const until = Math.min(end, last * PACKET_BYTES);
    while (at < until) {
      const next = Math.min(until, at + CHUNK_PACKETS * PACKET_BYTES);
      yield bytes.subarray(at - base, next - base);
      at = next;
    }
  }
}

/** Video first, then audio in the order of the wish; only these go into segments. */
function outputTracks(program: ChosenProgram, preferred: string | null | undefined): Track[] {
  const wishes = (preferred ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "");
  const rank = (track: Track) => {
    const place = wishes.findIndex((wish) => sameLanguage(wish, track.language));
    return place < 0 ? wishes.length : place;
  };
  const videos = program.tracks.filter((track) => track.kind === "video");
  const audios = program.tracks.filter((track) => track.kind === "audio").sort((a, b) => rank(a) - rank(b));
  return [...videos, ...audios];
}

function hlsPlan(format: PacketFormat, program: ChosenProgram, plan: CutPlan, output: readonly Track[]): HlsPlan {
  let startMs = 0;
  const segments = plan.durationsMs.map((durationMs, index): HlsSegment => {
    const segment = { index, startMs, durationMs };
    startMs += durationMs;
    return segment;
  });
  // The places never change, so each is searched once.
  const found = new Map<number, number>();
  const locate = async (n: number, source: ByteSource, signal: AbortSignal) => {
    const from = plan.searchFrom[n];
    if (from === undefined) return format.packetCount;
    const known = found.get(n);
    if (known !== undefined) return known;
    const packet = await findAccessPoint(format, source, program.main, from, plan.anyUnit, signal);
    found.set(n, packet);
    return packet;
  };
  return {
    segments,
    targetDurationS: targetDurationS(plan.durationsMs),
    segmentBytes: () => null,
    readSegment(n, source, signal) {
      if (segments[n] === undefined) throw new MillraceError("not_found", `no segment ${n}`);
      const place: SegmentPlace = {
        first: n === 0,
        searchEnd: plan.searchFrom[n + 1] ?? format.packetCount,
        start: () => locate(n, source, signal),
        end: () => locate(n + 1, source, signal),
      };
      return readTransportSegment(format, program, output, place, source, signal);
    },
  };
}

/**
 * Opens a transport stream. Rejects with `bad_media` when it is none or has no tables, `unsupported_media` when it is
 * scrambled or has neither video nor audio, or as the source does.
 */
export async function openTransportStream(source: ByteSource, options: OpenOptions): Promise<Presentation> {
  const { signal } = options;
  const format = await detectPackets(source, signal);
  if (format === null) throw new MillraceError("bad_media", "no transport stream packets found");
  const program = await findProgram(format, source, signal);
  const targetMs = options.segmentTargetMs ?? DEFAULT_SEGMENT_TARGET_MS;
  const plan = await planTransportCuts(format, source, program, targetMs, signal);
  const sizeBytes = format.packetCount * PACKET_BYTES;
  const output = outputTracks(program, options.preferredAudioLanguage);
  const { strideBytes, firstAt } = format;
  return {
    container: "mpegts",
    tracks: program.tracks,
    outputTracks: output,
    durationMs: plan.durationMs,
    bytesPerSecond: plan.durationMs > 0 ? source.sizeBytes * 1000 / plan.durationMs : null,
    warnings: program.warnings,
    ts: {
      sizeBytes,
      fingerprint: ["ts", CUTTER_VERSION, source.sizeBytes, strideBytes, firstAt].join("-"),
      read: (start, end, from, abort) => readTs(format, start, Math.min(end ?? sizeBytes, sizeBytes), from, abort),
    },
    hls: hlsPlan(format, program, plan, output),
  };
}
