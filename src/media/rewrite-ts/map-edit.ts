/**
 * Program maps of a transport stream, changed without changing their length, so that every packet stays in its place.
 * The audio that the viewer prefers comes first, and audio converted to AAC is marked as AAC.
 */
import { crc32Mpeg } from "../../bytes/ts/crc.ts";
import { descriptorsOf, type MapStream, type ProgramMap, readPmt } from "../../bytes/ts/psi.ts";
import { trackOf } from "../index/ts/stream-types.ts";
import { sameLanguage } from "../language.ts";
import type { Track } from "../types.ts";

/** The changes to the maps of one program. */
export interface MapEdit {
  readonly programNumber: number;
  /** Languages, best first: audio in them comes before other audio. */
  readonly preferred: readonly string[];
  /** PIDs that carry AAC now. */
  readonly aacPids: ReadonlySet<number>;
}

/** stream_type of AAC with ADTS (ISO/IEC 13818-1, table 2-34). */
const TYPE_ADTS = 0x0f;
/** stuffing_descriptor (ETSI EN 300 468, 6.2.40), which decoders skip. */
const TAG_STUFFING = 0x42;
/**
 * Descriptors that name another codec: registration; AC-3, E-AC-3, DTS, AAC and the extension of DVB; AC-3 and E-AC-3 of
 * ATSC; and those of MPEG-1, MPEG-4 and MPEG-2 AAC audio.
 */
const CODEC_TAGS: ReadonlySet<number> = new Set([0x03, 0x05, 0x1c, 0x2b, 0x6a, 0x7a, 0x7b, 0x7c, 0x7f, 0x81, 0xcc]);

/** Comma-separated languages as a list. */
export function languagesOf(text: string | null | undefined): string[] {
  return (text ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "");
}

/** Audio in the order of the wish; all else stays in its place. Stable. */
function inWishedOrder(streams: readonly MapStream[], preferred: readonly string[]): MapStream[] {
  const rank = ({ language }: Track): number => {
    const place = preferred.findIndex((wish) => sameLanguage(wish, language));
    return place < 0 ? preferred.length : place;
  };
  const tracks = new Map(streams.map((stream) => [stream, trackOf(stream, false)]));
  const audios = streams.filter((stream) => tracks.get(stream)!.kind === "audio");
  const sorted = [...audios].sort((a, b) => rank(tracks.get(a)!) - rank(tracks.get(b)!));
  return streams.map((stream) => tracks.get(stream)!.kind === "audio" ? sorted.shift()! : stream);
}

function asAac(stream: MapStream): MapStream {
  const descriptors = stream.descriptors.slice();
  let at = 0;
  for (const { tag, body } of descriptorsOf(stream.descriptors)) {
    if (CODEC_TAGS.has(tag)) descriptors.fill(0xff, at + 2, at + 2 + body.length)[at] = TAG_STUFFING;
    at += 2 + body.length;
  }
  return { pid: stream.pid, streamType: TYPE_ADTS, descriptors };
}

/** `map` changed by `edit`; each stream takes as many bytes as before. */
export function editMap(map: ProgramMap, edit: MapEdit): ProgramMap {
  const streams = inWishedOrder(map.streams, edit.preferred)
    .map((stream) => edit.aacPids.has(stream.pid) ? asAac(stream) : stream);
  return { ...map, streams };
}

/** Whether `edit` changes `map` at all. */
export function changesMap(map: ProgramMap, edit: MapEdit): boolean {
  return editMap(map, edit).streams.some((stream, i) => stream !== map.streams[i]);
}

/**
 * The map section `section` changed by `edit`, of the same length; null if it belongs to another program or is damaged.
 */
export function editMapSection(section: Uint8Array, edit: MapEdit): Uint8Array | null {
  if (section.length < 16 || crc32Mpeg(section) !== 0) return null;
  const map = readPmt(section);
  if (map === null || map.programNumber !== edit.programNumber) return null;
  const out = section.slice();
  let at = 12 + (((section[10]! & 0x0f) << 8) | section[11]!);
  for (const { streamType, pid, descriptors } of editMap(map, edit).streams) {
    out.set([
      streamType,
      0xe0 | (pid >> 8),
      pid & 0xff,
      0xf0 | (descriptors.length >> 8),
      descriptors.length & 0xff,
      ...descriptors,
    ], at);
    at += 5 + descriptors.length;
  }
  const crcAt = out.length - 4;
  new DataView(out.buffer).setUint32(crcAt, crc32Mpeg(out.subarray(0, crcAt)));
  return out;
}
