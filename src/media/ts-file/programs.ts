/** Finds the programs of a transport stream in its first packets and chooses the one to play. */
import type { ByteSource } from "../../bytes/source.ts";
import { PAT_PID } from "../../bytes/ts/codes.ts";
import { MillraceError } from "../../errors.ts";
import { languageRank, languagesOf } from "../model/language.ts";
import type { Track } from "../model/types.ts";
import {
  isScrambled,
  NULL_PID,
  PACKET_BYTES,
  payloadOf,
  pidOf,
  startsUnit,
  SYNC_BYTE,
  unusable,
} from "../../bytes/ts/packet.ts";
import { type PacketFormat, readPackets } from "../../bytes/ts/packet-source.ts";
import { type ProgramMap, readPat, readPmt, SectionAssembler } from "../../bytes/ts/psi.ts";
import { trackOf } from "./stream-types.ts";

/** The program chosen. */
export interface ChosenProgram {
  readonly map: ProgramMap;
  readonly mapPid: number;
  readonly tracks: readonly Track[];
  /** The track by which the file is cut: video, or audio where there is none. */
  readonly main: Track;
  readonly warnings: readonly string[];
}

/** How far into the file to search for tables, packets (about 5 MiB); they come every 0.1–0.5 s, but a cut may lose the first. */
const SEARCH_PACKETS = 28_000;
/**
 * Packets read at a time while searching, about 32 KiB: tables are at the beginning of most files, and bytes may arrive
 * slowly.
 */
const STEP_PACKETS = 174;
/** Most programs to consider: multiplexes have about 20. */
const MAX_PROGRAMS = 256;
/** Packets of the main stream that decide whether it is scrambled. */
const SCRAMBLE_SAMPLE = 32;

interface Search {
  programs: Map<number, number>;
  readonly maps: Map<number, ProgramMap>;
  /** PID → [packets, scrambled ones]. */
  readonly scrambled: Map<number, [number, number]>;
}

function tracksOf(map: ProgramMap): Track[] {
  const seen = new Set<Track["kind"]>();
  return map.streams.map((stream) => {
    const track = trackOf(stream, map.descriptors, false);
    const isDefault = !seen.has(track.kind);
    seen.add(track.kind);
    return { ...track, isDefault };
  });
}

function rank(tracks: readonly Track[]): number {
  if (tracks.some((track) => track.kind === "video")) return 2;
  return tracks.some((track) => track.kind === "audio") ? 1 : 0;
}

function choose(search: Search): { map: ProgramMap; tracks: Track[] } | null {
  let best: { map: ProgramMap; tracks: Track[] } | null = null;
  for (const number of search.programs.keys()) {
    const map = search.maps.get(number);
    if (map === undefined) continue;
    const tracks = tracksOf(map);
    if (best === null || rank(tracks) > rank(best.tracks)) best = { map, tracks };
  }
  return best;
}

function enough(search: Search): boolean {
  if (search.programs.size === 0) return false;
  const chosen = choose(search);
  if (chosen === null) return false;
  const main = mainOf(chosen.tracks);
  if (main === null || rank(chosen.tracks) < 2) {
    return search.maps.size >= search.programs.size && sampled(search, main);
  }
  return sampled(search, main);
}

function sampled(search: Search, main: Track | null): boolean {
  return main === null || (search.scrambled.get(main.id)?.[0] ?? 0) >= SCRAMBLE_SAMPLE;
}

function mainOf(tracks: readonly Track[]): Track | null {
  return tracks.find((track) => track.kind === "video") ?? tracks.find((track) => track.kind === "audio") ?? null;
}

/** The program of `map` in a stream cut by the PID `mainPid`, one of its streams. */
export function programOf(map: ProgramMap, mapPid: number, mainPid: number): ChosenProgram {
  const tracks = tracksOf(map);
  return { map, mapPid, tracks, main: tracks.find((track) => track.id === mainPid) ?? tracks[0]!, warnings: [] };
}

/** The program of `map`, cut by its first video, or sound where there is none; null when it has neither. */
export function programFrom(map: ProgramMap, mapPid: number): ChosenProgram | null {
  const tracks = tracksOf(map);
  const main = mainOf(tracks);
  return main === null ? null : { map, mapPid, tracks, main, warnings: [] };
}

/** Tracks that go into segments: video first, then audio in the requested order, comma-separated languages. */
export function outputTracks(program: ChosenProgram, preferred: string | null | undefined): Track[] {
  const wishes = languagesOf(preferred);
  const rank = (track: Track) => languageRank(track.language, wishes);
  const videos = program.tracks.filter((track) => track.kind === "video");
  const audios = program.tracks.filter((track) => track.kind === "audio").sort((a, b) => rank(a) - rank(b));
  return [...videos, ...audios];
}

/**
 * Reads tables until the program to play is known: the first with video, else the first with audio. Rejects with
 * `bad_media` without tables, `unsupported_media` when nothing can be played or the stream is scrambled.
 */
export async function findProgram(
  format: PacketFormat,
  source: ByteSource,
  signal: AbortSignal,
): Promise<ChosenProgram> {
  const search: Search = { programs: new Map(), maps: new Map(), scrambled: new Map() };
  const assemblers = new Map<number, SectionAssembler>([[PAT_PID, new SectionAssembler()]]);
  const limit = Math.min(format.packetCount, SEARCH_PACKETS);
  for (let first = 0; first < limit && !enough(search); first += STEP_PACKETS) {
    const bytes = await readPackets(format, source, first, Math.min(STEP_PACKETS, limit - first), signal);
    for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) look(bytes, at, search, assemblers);
  }
  const chosen = choose(search);
  if (chosen === null) throw new MillraceError("bad_media", "the transport stream has no program tables");
  const { map, tracks } = chosen;
  const main = mainOf(tracks);
  if (main === null) {
    const types = tracks.map((track) => track.codecId).join(", ");
    throw new MillraceError(
      "unsupported_media",
      `the transport stream has no video or audio (types ${types || "none"})`,
    );
  }
  const [packets, bad] = search.scrambled.get(main.id) ?? [0, 0];
  if (bad * 2 > packets) throw new MillraceError("unsupported_media", "the transport stream is scrambled");
  const warnings = search.programs.size > 1
    ? [`the transport stream has ${search.programs.size} programs; HLS carries program ${map.programNumber}`]
    : [];
  return { map, mapPid: search.programs.get(map.programNumber)!, tracks, main, warnings };
}

function look(bytes: Uint8Array, at: number, search: Search, assemblers: Map<number, SectionAssembler>): void {
  const pid = pidOf(bytes, at);
  if (bytes[at] !== SYNC_BYTE || pid === NULL_PID) return;
  const counts = search.scrambled.get(pid) ?? [0, 0];
  counts[0]++;
  if (isScrambled(bytes, at)) counts[1]++;
  search.scrambled.set(pid, counts);
  const assembler = assemblers.get(pid);
  if (assembler === undefined || unusable(bytes, at)) return;
  for (const section of assembler.push(payloadOf(bytes, at), startsUnit(bytes, at))) {
    if (pid === PAT_PID) {
      for (const [number, mapPid] of readPat(section)) {
        if (search.programs.size >= MAX_PROGRAMS) break;
        search.programs.set(number, mapPid);
        if (!assemblers.has(mapPid)) assemblers.set(mapPid, new SectionAssembler());
      }
      continue;
    }
    const map = readPmt(section);
    if (map !== null && search.programs.get(map.programNumber) === pid && !search.maps.has(map.programNumber)) {
      search.maps.set(map.programNumber, map);
    }
  }
}
