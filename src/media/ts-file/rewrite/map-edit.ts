/**
 * Program maps of a transport stream, changed without changing their length, so that every packet stays in its place.
 * The audio that the viewer prefers comes first, and audio converted to AAC is marked as AAC.
 */
import { DESCRIPTOR, STREAM_TYPE } from "../../../bytes/ts/codes.ts";
import { crc32Mpeg } from "../../../bytes/ts/crc.ts";
import { descriptorsOf, type MapStream, type ProgramMap, readPmt, signSection } from "../../../bytes/ts/psi.ts";
import { trackOf } from "../stream-types.ts";
import { languageRank } from "../../model/language.ts";
import type { Track } from "../../model/types.ts";

/** The changes to the maps of one program. */
export interface MapEdit {
  readonly programNumber: number;
  /** Languages, best first: audio in them comes before other audio. */
  readonly preferred: readonly string[];
  /** Whether the sound of a track of the file is AAC now. */
  readonly becomesAac: (track: Track) => boolean;
}

/** Descriptors that name another codec. */
const CODEC_TAGS: ReadonlySet<number> = new Set([
  DESCRIPTOR.mpeg1Audio,
  DESCRIPTOR.registration,
  DESCRIPTOR.mpeg4Audio,
  DESCRIPTOR.mpeg2Aac,
  DESCRIPTOR.ac3,
  DESCRIPTOR.eac3,
  DESCRIPTOR.dts,
  DESCRIPTOR.aac,
  DESCRIPTOR.extension,
  DESCRIPTOR.atscAc3,
  DESCRIPTOR.atscEac3,
]);

/** Audio in the order of the wish; all else stays in its place. Stable. */
function inWishedOrder({ streams, descriptors }: ProgramMap, preferred: readonly string[]): MapStream[] {
  const rank = ({ language }: Track) => languageRank(language, preferred);
  const tracks = new Map(streams.map((stream) => [stream, trackOf(stream, descriptors, false)]));
  const audios = streams.filter((stream) => tracks.get(stream)!.kind === "audio");
  const sorted = [...audios].sort((a, b) => rank(tracks.get(a)!) - rank(tracks.get(b)!));
  return streams.map((stream) => tracks.get(stream)!.kind === "audio" ? sorted.shift()! : stream);
}

function asAac(stream: MapStream): MapStream {
  const descriptors = stream.descriptors.slice();
  let at = 0;
  for (const { tag, body } of descriptorsOf(stream.descriptors)) {
    // Decoders skip it (ETSI EN 300 468, 6.2.40).
    if (CODEC_TAGS.has(tag)) descriptors.fill(0xff, at + 2, at + 2 + body.length)[at] = DESCRIPTOR.stuffing;
    at += 2 + body.length;
  }
  return { pid: stream.pid, streamType: STREAM_TYPE.aac, descriptors };
}

/** `map` changed by `edit`; each stream takes as many bytes as before. */
export function editMap(map: ProgramMap, edit: MapEdit): ProgramMap {
  const streams = inWishedOrder(map, edit.preferred)
    .map((stream) => edit.becomesAac(trackOf(stream, map.descriptors, false)) ? asAac(stream) : stream);
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
  signSection(out);
  return out;
}
