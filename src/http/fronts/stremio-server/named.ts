/** How addresses of the app's server name a torrent and a file of it: `/INFOHASH/FILE?tr=TRACKER&f=PATTERN`. */
import { chooseFile, looksPlayable } from "../../../content/file-choice.ts";
import type { StreamSelector } from "../../../content/selector.ts";
import { MillraceError } from "../../../errors.ts";
import { type AnyMetainfo, isLive } from "../../../metainfo/live.ts";
import type { Metainfo, MetainfoFile } from "../../../metainfo/types.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { episodesOf } from "../episodes.ts";

/** Trackers that are taken from an address, and their length, characters: an app names some twenty. */
const MAX_TRACKERS = 50;
const MAX_TRACKER_CHARS = 512;
/** Patterns of file names that are looked at, and their length, characters. */
const MAX_PATTERNS = 8;
const MAX_PATTERN_CHARS = 200;

const HASH = /^[0-9a-fA-F]{40}$/;
/** Names of this machine: apps write them whatever the port is that they reach. */
const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/** What an address names. */
export interface NamedFile {
  readonly hash: string;
  readonly selector: StreamSelector;
  /** Its number in the torrent, counted from 0; `-1`: the server chooses; else its name. */
  readonly file: string;
  /** Texts of which the name of the chosen file contains one. */
  readonly patterns: readonly string[];
}

/** An infohash in lower case. Throws `not_found`. */
export function hashOf(given: string | undefined): string {
  if (given === undefined || !HASH.test(given)) {
    throw new MillraceError("not_found", "there is nothing at this address");
  }
  return given.toLowerCase();
}

/** The file that these parts of an address name. Throws `not_found`. */
export function namedFile(hash: string | undefined, file: string, query: URLSearchParams): NamedFile {
  const found = hashOf(hash);
  const patterns = query.getAll("f").slice(0, MAX_PATTERNS).flatMap(literalOf);
  return { hash: found, selector: selectorOf(found, query.getAll("tr")), file, patterns };
}

/** The file that an address of this server names; null: the address is of another kind. */
export function fileAt(c: HttpContext, prefix: string, address: string): NamedFile | null {
  if (!URL.canParse(address)) return null;
  const { host, hostname, pathname, searchParams } = new URL(address);
  const isHere = host === new URL(c.get("caller").ownUrl).host || LOOPBACK.test(hostname);
  if (!isHere || !pathname.startsWith(`${prefix}/`)) return null;
  const [hash = "", file = "-1"] = pathname.slice(prefix.length + 1).split("/");
  if (!HASH.test(hash)) return null;
  try {
    return namedFile(hash, decodeURIComponent(file), searchParams);
  } catch {
    return null;
  }
}

/** The torrent of an infohash with the trackers among `sources`, each with or without `tracker:` before it. */
export function selectorOf(hash: string, sources: readonly string[]): StreamSelector {
  const trackers = sources.map((source) => source.replace(/^tracker:/, ""))
    .filter((tracker) => /^(?:udp|https?|wss?):\/\//i.test(tracker) && tracker.length <= MAX_TRACKER_CHARS)
    .slice(0, MAX_TRACKERS);
  if (trackers.length === 0) return { kind: "infohash", infohash: hash };
  const fields = trackers.map((tracker) => `&tr=${encodeURIComponent(tracker)}`);
  return { kind: "magnet", magnet: `magnet:?xt=urn:btih:${hash}${fields.join("")}` };
}

/**
 * The text that a pattern (`/text/i`) looks for, in lower case. Patterns of other forms are left out: one of a stranger may
 * take any time.
 */
function literalOf(pattern: string): string[] {
  const body = /^\/(.*)\/[a-z]*$/s.exec(pattern)?.[1] ?? pattern;
  if (pattern.length > MAX_PATTERN_CHARS || /[[\](){}*+?|^$]/.test(body.replace(/\\./gs, ""))) return [];
  if (/\\[a-z0-9]/i.test(body)) return [];
  return [body.replace(/\\(.)/gs, "$1").toLowerCase()];
}

/**
 * The torrent's description; peers are asked if it is not here.
 *
 * @throws `invalid_argument`, `not_found`, `bad_transport_file`, `denied`, `timeout`, `unsupported_media`, or the
 * signal's reason: as `MetainfoFinder.find`
 */
export async function description(
  c: HttpContext,
  { api }: HttpParts,
  { hash, selector }: Pick<NamedFile, "hash" | "selector">,
): Promise<AnyMetainfo> {
  const context = { callerIsLocal: c.get("caller").isLocal, signal: c.req.raw.signal };
  return await api.content.known(hash) ?? await api.content.find(selector, context);
}

/** The number of the file, as `_idx` of playback; undefined: that of playback. Rejects with `not_found` and as `description`. */
export async function indexOf(c: HttpContext, parts: HttpParts, named: NamedFile): Promise<number | undefined> {
  if (/^\d{1,9}$/.test(named.file)) return Number(named.file);
  if (named.file === "-1" && named.patterns.length === 0) return undefined;
  const metainfo = await description(c, parts, named);
  if (isLive(metainfo)) return undefined;
  if (named.file === "-1") return guessedFile(metainfo, null, named.patterns).index;
  const file = metainfo.files.find(({ name, path, padding }) =>
    !padding && (name === named.file || path === named.file)
  );
  if (file === undefined) throw new MillraceError("not_found", "the torrent has no such file");
  return file.index;
}

/** Which episode is wanted. */
export interface WantedEpisode {
  readonly season?: number | undefined;
  readonly episode?: number | undefined;
}

/**
 * The file that the app most likely wants: the episode, or the largest film of those that a pattern allows. Throws
 * `no_playable_file`.
 */
export function guessedFile(
  metainfo: Metainfo,
  wanted: WantedEpisode | null,
  patterns: readonly string[] = [],
): MetainfoFile {
  const playable = metainfo.files.filter(looksPlayable);
  const { season, episode } = wanted ?? {};
  if (season !== undefined && episode !== undefined) {
    const named = playable.filter(({ name }) => isEpisode(name, season, episode));
    const counted = episodesOf(metainfo.files).find((one) => one.season === season && one.episode === episode)?.file;
    const found = named.sort((a, b) => b.sizeBytes - a.sizeBytes)[0] ?? counted;
    if (found !== undefined) return found;
  }
  const allowed = playable.filter(({ path }) => patterns.some((text) => path.toLowerCase().includes(text)));
  return chooseFile(metainfo, undefined, allowed.length === 0 ? null : allowed.map(({ index }) => index));
}

/** `S02E03` or `2x03`. */
function isEpisode(name: string, season: number, episode: number): boolean {
  const match = /\bS(\d{1,2})[ ._-]?E(\d{1,4})\b/i.exec(name) ?? /\b(\d{1,2})x(\d{2,3})\b/i.exec(name);
  return match !== null && Number(match[1]) === season && Number(match[2]) === episode;
}
