/**
 * The front of an indexer that speaks Torznab (`--front torznab`): Sonarr, Radarr and Prowlarr search the library, and read
 * what was added last.
 */
import { nextTurn } from "../../../bytes/turn.ts";
import { MillraceError } from "../../../errors.ts";
import type { TorrentRequest } from "../../../playlist/torrents.ts";
import { VERSION } from "../../../version.ts";
import type { HttpContext } from "../../context.ts";
import type { Front, FrontGround } from "../front.ts";
import { basicCredentials, type LoginOutcome } from "../logins.ts";
import { addRoute } from "../requests.ts";
import { streamed } from "../streamed.ts";
import { capabilitiesXml, errorXml, FEED_END, feedStart, PAGE_TORRENTS, torrentXml } from "./feed.ts";

/** Longest text that is searched for, characters; titles are shorter. */
const MAX_QUERY_CHARS = 1000;
/** Most numbers of categories in one request: clients know some hundred. */
const MAX_CATEGORIES = 500;
/** Parameters that name a series or film by a number of a database of films. The library has no such numbers. */
const NUMBERED = ["tvdbid", "imdbid", "tmdbid", "rid", "tvmazeid", "traktid", "doubanid"];

/** See the page on fronts. */
export const TORZNAB: Front = {
  name: "torznab",
  access: "own",
  open: (ground) => (app, prefix) => {
    // Where clients look for it whose user gives the server's address alone, and at the place that Jackett has.
    for (const path of ["/api", "/torznab/api", "/api/v2.0/indexers/:name/results/torznab/api"]) {
      addRoute(app, ground.parts, "GET", `${prefix}${path}`, (c) => answer(c, ground, prefix));
    }
  },
};

async function answer(c: HttpContext, ground: FrontGround, prefix: string): Promise<Response> {
  const outcome = await keyOutcome(c, ground);
  if (outcome === "too_often") return xml(errorXml("limit"), { status: 429, headers: { "retry-after": "60" } });
  if (outcome === "wrong") return xml(errorXml("wrongKey"));
  const query = new URL(c.req.url).searchParams;
  const asked = query.get("t");
  if (asked === null) return xml(errorXml("missing", "t"));
  if (asked === "caps") return xml(capabilitiesXml(VERSION));
  if (!["search", "tvsearch", "movie"].includes(asked)) return xml(errorXml("noFunction"));
  try {
    return await feed(c, ground, prefix, requestOf(query));
  } catch (error) {
    if (!(error instanceof MillraceError && error.code === "invalid_argument")) throw error;
    return xml(errorXml("incorrect", error.message));
  }
}

/**
 * The key is address and password of an account, with a colon between them. This machine and the local network need
 * none; one that they give is checked, so that a mistake shows where the client is set up.
 */
async function keyOutcome(c: HttpContext, { logins }: FrontGround): Promise<LoginOutcome> {
  const { addressClass, clientHost } = c.get("caller");
  const key = c.req.query("apikey") ?? "";
  const colon = key.indexOf(":");
  const given = colon > 0
    ? { user: key.slice(0, colon), password: key.slice(colon + 1) }
    : basicCredentials(c.req.header("authorization"));
  if (given === null) return key === "" && addressClass !== "internet" ? "right" : "wrong";
  return await logins.check(given.user, given.password, clientHost, c.req.raw.signal);
}

/** What a search asks for; null: something that the library cannot have. Throws `invalid_argument`. */
function requestOf(query: URLSearchParams): TorrentRequest | null {
  const number = (name: string, otherwise: number) => {
    const value = query.get(name) || String(otherwise);
    if (/^\d{1,9}$/.test(value)) return Number(value);
    throw new MillraceError("invalid_argument", `${name}: a number is expected`);
  };
  const words = [query.get("q") ?? "", query.get("year") ?? "", episodeWords(query)].filter((part) => part !== "");
  const text = words.join(" ");
  if (text.length > MAX_QUERY_CHARS) throw new MillraceError("invalid_argument", "q: it is too long");
  // Everything else would be an answer to another question.
  if ((query.get("q") ?? "") === "" && NUMBERED.some((name) => query.get(name))) return null;
  const categories = (query.get("cat") ?? "").split(",").slice(0, MAX_CATEGORIES).filter((one) =>
    /^\d{1,9}$/.test(one)
  );
  return {
    query: text,
    categories: categories.length === 0 ? null : categories.map(Number),
    offset: number("offset", 0),
    limit: Math.min(PAGE_TORRENTS, number("limit", PAGE_TORRENTS)),
  };
}

/** Season and episode as titles have them; a daily show's have the date. */
function episodeWords(query: URLSearchParams): string {
  const [season, episode] = [query.get("season") ?? "", query.get("ep") ?? ""];
  const day = /^(\d{1,2})\/(\d{1,2})$/.exec(episode);
  if (!/^(?:\d{1,4})?$/.test(season) || !(day || /^(?:\d{1,4})?$/.test(episode))) {
    throw new MillraceError("invalid_argument", "season, ep: numbers are expected");
  }
  if (season === "") return "";
  if (day) return `${season} ${day[1]} ${day[2]}`;
  if (season.length === 4) return season;
  const two = (number: string) => String(Number(number)).padStart(2, "0");
  return `s${two(season)}${episode === "" ? "" : `e${two(episode)}`}`;
}

async function feed(
  c: HttpContext,
  { parts }: FrontGround,
  prefix: string,
  request: TorrentRequest | null,
): Promise<Response> {
  const { catalogue, content } = parts.api;
  const { total, entries } = request === null ? { total: 0, entries: [] } : await catalogue.torrents(request);
  const base = `${c.get("caller").ownUrl}${prefix}`;
  const document = async function* () {
    yield feedStart(base, request?.offset ?? 0, total);
    for (const torrent of entries) {
      yield torrentXml(torrent, await content.known(torrent.infohashHex));
      await nextTurn();
    }
    yield FEED_END;
  };
  return xml(streamed(document()));
}

function xml(body: string | ReadableStream<Uint8Array>, { status = 200, headers = {} } = {}): Response {
  const fields = { "content-type": "application/rss+xml; charset=utf-8", "cache-control": "no-store", ...headers };
  return new Response(body, { status, headers: fields });
}
