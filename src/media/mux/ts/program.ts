/** The one program of the transport stream: which tracks it carries, on which PIDs, and its PAT and PMT. */
import type { Track } from "../../model/types.ts";
import { elementaryFormat } from "./elementary/carry.ts";
import type { ElementaryFormat } from "./elementary/format.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import { sectionPackets } from "../../../bytes/ts/psi.ts";
import { NO_PCR, packetsFor, PCR_FIELD_BYTES, spreadPes } from "./packets.ts";
import { Payload } from "./payload.ts";
import { pesHeaderBytes, writePesHeader } from "./pes.ts";
import { FIRST_ELEMENTARY_PID, patSection, PMT_PID, pmtSection } from "./psi.ts";
import { DECODER_DELAY_90K, packetsToAlign, START_OFFSET_90K } from "./timing.ts";

/** A track in the output. */
export interface ProgramStream {
  readonly track: Track;
  /** Index into `MediaIndex.tracks`. */
  readonly trackIndex: number;
  readonly pid: number;
  readonly format: ElementaryFormat;
  /** Exactly one stream carries the PCR: the video, or the first audio. */
  readonly carriesPcr: boolean;
}

/** The program. Immutable. */
export interface Program {
  readonly streams: readonly ProgramStream[];
  /** Index into `streams` of the one that carries the PCR. */
  readonly pcrStream: number;
  /** How many of them bring their counters to the end once per slot: all but subtitles, which do so with every PES. */
  readonly alignedStreams: number;
  /** One PAT packet and the PMT packets, counters 0. */
  readonly psi: Uint8Array;
  readonly psiPackets: number;
}

/** Builds the program of `indexes` (into `tracks`), in PMT order. Every one must be carriable. */
export function buildProgram(tracks: readonly Track[], indexes: readonly number[]): Program {
  const firstVideo = indexes.findIndex((index) => tracks[index]!.kind === "video");
  const pcrStream = Math.max(0, firstVideo);
  const streams = indexes.map((trackIndex, i): ProgramStream => {
    const track = tracks[trackIndex]!;
    const format = elementaryFormat(track)!;
    return { track, trackIndex, pid: FIRST_ELEMENTARY_PID + i, format, carriesPcr: i === pcrStream };
  });
  const map = streams.map(({ pid, format, track }) => ({
    pid,
    streamType: format.streamType,
    registration: format.registration,
    ...format.descriptors === undefined ? {} : { descriptors: format.descriptors },
    track,
  }));
  const registration = streams.find(({ format }) => format.programRegistration)?.format.programRegistration;
  const pat = sectionPackets(patSection(), 0);
  const pmt = sectionPackets(pmtSection(streams[pcrStream]!.pid, map, registration), PMT_PID);
  const psi = new Uint8Array(pat.length + pmt.length);
  psi.set(pat);
  psi.set(pmt, pat.length);
  const alignedStreams = streams.filter(({ format }) => format.partsOf === undefined).length;
  return { streams, pcrStream, alignedStreams, psi, psiPackets: psi.length / PACKET_BYTES };
}

/** Most bytes of PES header and payload that an access unit may take. */
export function maxPesBytes(stream: ProgramStream, sizeBytes: number, ptsShift90k: number, keyframe: boolean): number {
  return pesHeaderBytes(ptsShift90k) + stream.format.maxBytes(sizeBytes, keyframe);
}

/** Packets that a PES of `pesBytes` needs in `stream`. */
export function pesPackets(stream: ProgramStream, pesBytes: number): number {
  return packetsFor(pesBytes, stream.carriesPcr ? PCR_FIELD_BYTES : 0);
}

/** Packets that a PES of `bytes` of subtitles takes: a multiple of 16, after which the counter is where it was. */
export function subtitlePesPackets(stream: ProgramStream, bytes: number): number {
  const packets = pesPackets(stream, pesHeaderBytes(0) + bytes);
  return packets + packetsToAlign(packets);
}

/** Writes PAT and PMT, round `round` of their slot. */
export function writePsi(program: Program, out: Uint8Array, at: number, round: number): void {
  out.set(program.psi, at);
  // PMT sections that span packets advance their counter by that many per round.
  const pmtPackets = program.psiPackets - 1;
  out[at + 3] = out[at + 3]! | (round & 15);
  for (let i = 0; i < pmtPackets; i++) {
    const control = at + (1 + i) * PACKET_BYTES + 3;
    out[control] = out[control]! | ((round * pmtPackets + i) & 15);
  }
}

/** One access unit to be written. Times are those of the timeline, without the layout's offset. */
export interface AccessUnit {
  readonly pts90k: number;
  readonly dts90k: number;
  readonly keyframe: boolean;
  /** The data is the elementary stream as the TS carries it (several frames of sound). Default: as the container has it. */
  readonly isReady?: boolean;
  readonly data: Uint8Array;
  readonly from: number;
  readonly to: number;
}

/** Used within one synchronous call only. */
const payload = new Payload();

/**
 * Writes an access unit as exactly `packets` packets at `out[at]`, at least as many as `maxPesBytes` needs; the rest is
 * stuffing. `pcr90k` is the timeline's time for the PCR; ignored where the stream carries none.
 */
export function writeAccessUnit(
  out: Uint8Array,
  at: number,
  packets: number,
  stream: ProgramStream,
  unit: AccessUnit,
  firstCc: number,
  pcr90k: number,
): void {
  const { streamId } = stream.format;
  const headerBytes = pesHeaderBytes(unit.pts90k - unit.dts90k);
  payload.reset(headerBytes);
  if (unit.isReady) payload.setData(unit.data, unit.from, unit.to);
  else stream.format.fill(payload, unit.data, unit.from, unit.to, unit.keyframe);
  // Each packet must carry something; zeros after an access unit mean nothing to any of the codecs.
  const pesBytes = Math.max(payload.sizeBytes, packets);
  const pts = unit.pts90k + START_OFFSET_90K;
  const dts = unit.dts90k + START_OFFSET_90K;
  writePesHeader(payload.head, 0, streamId, pts, dts, pesBytes - headerBytes);
  const pcr = stream.carriesPcr ? pcr90k + START_OFFSET_90K - DECODER_DELAY_90K : NO_PCR;
  spreadPes(out, at, packets, payload, pesBytes, stream.pid, firstCc, pcr, unit.keyframe);
  // Don't hold on to the container's bytes until the next access unit.
  payload.reset(0);
}
