/**
 * The front of an Xtream codes panel (`--front xtream`): apps for television sign in with an account of the engine and play
 * the library. Name and password are in every address, as these apps write them.
 */
import { MillraceError } from "../../../errors.ts";
import type { CatalogueItem, CatalogueKind } from "../../../playlist/catalogue.ts";
import { writeM3u } from "../../../playlist/m3u/write.ts";
import type { M3uEntry } from "../../../playlist/m3u/m3u-entry.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { text } from "../../guard.ts";
import { hlsOfItem, itemResponse } from "../../item-response.ts";
import { addStreamRoutes, OUTPUT_TYPES } from "../../stream-routes.ts";
import type { Front, FrontGround } from "../front.ts";
import { addRoute } from "../requests.ts";
import { streamed } from "../streamed.ts";
import { episodeOf, XtreamLibrary } from "./library.ts";

/** How far away the end of an account is said to be, s: some apps cannot read one that never ends. */
const YEARS_S = 10 * 365 * 86_400;

/** Programmes of `get_short_epg` where an app does not say how many. */
const SHORT_PROGRAMMES = 4;

interface Parts extends FrontGround {
  readonly library: XtreamLibrary;
}
interface Login {
  readonly user: string;
  readonly password: string;
}

/** See the page on fronts. */
export const XTREAM: Front = {
  name: "xtream",
  access: "own",
  open: (ground) => {
    const opening = XtreamLibrary.open(ground.parts, ground.parts.frontStates);
    return (app, prefix) => {
      const add = (
        paths: readonly string[],
        handle: (c: HttpContext, of: Parts, base: string) => Promise<Response>,
      ) => {
        for (const path of paths) {
          addRoute(app, ground.parts, "GET", `${prefix}${path}`, async (c) => {
            const base = `${c.get("caller").ownUrl}${prefix}`;
            return await handle(c, { ...ground, library: await opening }, base);
          });
        }
      };
      add(["/player_api.php"], api);
      add(["/get.php"], list);
      add(["/xmltv.php"], guide);
      add(["/live/:user/:password/:id", "/:user/:password/:id{[0-9]+(?:\\.[a-z0-9]+)?}"], live);
      add(["/movie/:user/:password/:id"], (c, of) => film(c, of, false));
      add(["/timeshift/:user/:password/:minutes/:start/:id"], (c, of) => {
        return archive(c, of, c.req.param("start") ?? "", c.req.param("minutes") ?? "");
      });
      add(
        ["/streaming/timeshift.php"],
        (c, of) => archive(c, of, c.req.query("start") ?? "", c.req.query("duration") ?? ""),
      );
      add(["/series/:user/:password/:id"], (c, of) => film(c, of, true));
      // HLS leads there.
      if (prefix === "") addStreamRoutes(app, ground.parts);
    };
  },
};

/** Name and password of the address; null where they are wrong. Throws `too_busy` after too many attempts. */
async function login(c: HttpContext, { logins }: FrontGround, given: Login): Promise<Login | null> {
  const outcome = await logins.check(given.user, given.password, c.get("caller").clientHost, c.req.raw.signal);
  if (outcome === "too_often") throw new MillraceError("too_busy", "too many attempts: try again in a minute");
  return outcome === "right" ? given : null;
}

function inQuery(c: HttpContext): Login {
  return { user: c.req.query("username") ?? "", password: c.req.query("password") ?? "" };
}

/** Everything that an app asks besides streams. An unknown action is answered as none, as panels do. */
async function api(c: HttpContext, of: Parts): Promise<Response> {
  const { library } = of;
  const who = await login(c, of, inQuery(c));
  // Apps read the refusal out of an answer that succeeded.
  if (who === null) return c.json({ user_info: { auth: 0 } });
  const category = c.req.query("category_id") || null;
  const number = (name: string) => {
    const value = c.req.query(name) ?? "";
    if (!/^\d{1,15}$/.test(value)) throw new MillraceError("invalid_argument", `${name}: a number is expected`);
    return Number(value);
  };
  switch (c.req.query("action")) {
    case "get_live_categories":
      return c.json(await library.categories("channel"));
    case "get_vod_categories":
      return c.json(await library.categories("film"));
    case "get_series_categories":
      return c.json(await library.categories("series"));
    case "get_live_streams":
      return entries(library, "channel", category);
    case "get_vod_streams":
      return entries(library, "film", category);
    case "get_series":
      return entries(library, "series", category);
    case "get_vod_info":
      return found(await library.film(number("vod_id")));
    case "get_series_info":
      return found(await library.series(c, number("series_id")));
    case "get_short_epg": {
      const limit = c.req.query("limit") ? number("limit") : SHORT_PROGRAMMES;
      return c.json({ epg_listings: await library.programmes(number("stream_id"), "from now", limit) });
    }
    case "get_simple_data_table":
    case "get_simple_date_table":
      return c.json({ epg_listings: await library.programmes(number("stream_id"), "all", Infinity) });
    default:
      return c.json(account(c, of.parts, who));
  }
}

function found(answer: Readonly<Record<string, unknown>> | null): Response {
  return answer === null ? text("the library has nothing by that number", 404) : Response.json(answer);
}

/** What apps take for the account and its server. Numbers are texts where panels send texts. */
function account(c: HttpContext, { clock, sessions }: HttpParts, { user, password }: Login) {
  const { protocol, hostname, port } = new URL(c.get("caller").ownUrl);
  const nowS = Math.floor(clock.now() / 1000);
  const shownPort = port || (protocol === "https:" ? "443" : "80");
  return {
    user_info: {
      ...{ username: user, password, message: "", auth: 1, status: "Active", exp_date: String(nowS + YEARS_S) },
      ...{ is_trial: "0", active_cons: String(sessions.list().length), created_at: "1700000000" },
      ...{ max_connections: "16", allowed_output_formats: ["ts", "m3u8"] },
    },
    server_info: {
      ...{ url: hostname, port: shownPort, https_port: protocol === "https:" ? shownPort : "443" },
      ...{ server_protocol: protocol.slice(0, -1), rtmp_port: "0", timezone: "UTC", timestamp_now: nowS },
      ...{ time_now: new Date(nowS * 1000).toISOString().slice(0, 19).replace("T", " "), process: true },
    },
  };
}

/** A list of streams as one array, written as it is read. */
function entries(library: XtreamLibrary, kind: CatalogueKind, category: string | null): Response {
  const json = async function* () {
    let before = "[";
    for await (const page of library.items(kind, category)) {
      const written = page.map(([item, num]) => JSON.stringify(library.entry(kind, item, num)));
      if (written.length > 0) yield before + written.join(",");
      if (written.length > 0) before = ",";
    }
    yield before === "[" ? "[]" : "]";
  };
  return new Response(streamed(json()), { headers: { "content-type": "application/json" } });
}

/** `/get.php`: channels and films as an M3U list. */
async function list(c: HttpContext, of: Parts, base: string): Promise<Response> {
  const who = await login(c, of, inQuery(c));
  if (who === null) return text("wrong name or password", 401);
  const names = `${encodeURIComponent(who.user)}/${encodeURIComponent(who.password)}`;
  const isHls = /^(?:m3u8|hls)$/.test(c.req.query("output") ?? "");
  const isPlain = c.req.query("type") === "m3u";
  const entry = (item: CatalogueItem, url: string): M3uEntry => {
    const attributes: Record<string, string> = isPlain ? {} : {
      "tvg-id": item.tvgId,
      "tvg-name": item.title,
      "tvg-logo": item.picture,
      "group-title": item.category,
      ...(item.archiveDays > 0 ? { catchup: "xc", "catchup-days": String(item.archiveDays) } : {}),
    };
    return { url, title: item.title || "?", durationSeconds: -1, attributes, group: "", directives: [] };
  };
  const all = async function* () {
    for await (const page of of.library.items("channel", null)) {
      for (const [item] of page) yield entry(item, `${base}/live/${names}/${item.id}.${isHls ? "m3u8" : "ts"}`);
    }
    for await (const page of of.library.items("film", null)) {
      for (const [item] of page) yield entry(item, `${base}/movie/${names}/${item.id}.ts`);
    }
  };
  const guideUrl = `${base}/xmltv.php?username=${encodeURIComponent(who.user)}&password=${
    encodeURIComponent(who.password)
  }`;
  const header = { attributes: isPlain ? {} : { "url-tvg": guideUrl, "x-tvg-url": guideUrl } };
  return new Response(c.req.raw.method === "HEAD" ? null : streamed(writeM3u(header, all())), {
    headers: {
      "content-type": "audio/x-mpegurl; charset=utf-8",
      "content-disposition": 'attachment; filename="millrace.m3u"',
      "cache-control": "no-store",
    },
  });
}

/** `/xmltv.php`: the programme guide, with the ids that channels have in `get_live_streams` and in the list. */
async function guide(c: HttpContext, of: Parts): Promise<Response> {
  if (await login(c, of, inQuery(c)) === null) return text("wrong name or password", 401);
  const headers = { "content-type": "application/xml; charset=utf-8" };
  if (c.req.raw.method === "HEAD") return new Response(null, { headers });
  // Pictures of channels are in the list.
  return new Response(streamed(of.parts.api.guide.export({ logoUrl: () => "" })), { headers });
}

/** Number and ending that an address names. Rejects with `denied` where name and password are wrong. */
async function named(c: HttpContext, of: Parts): Promise<{ readonly id: number; readonly isHls: boolean }> {
  const given = c.req.param() as Record<string, string>;
  const { user, password } = given["id"] === undefined ? inQuery(c) : { user: "", password: "", ...given };
  const id = given["id"] ?? c.req.query("stream") ?? "";
  if (await login(c, of, { user, password }) === null) throw new MillraceError("denied", "wrong name or password");
  const [, digits, ending] = /^(\d{1,15})(?:\.(\w{1,8}))?$/.exec(id) ?? [];
  if (digits === undefined) throw new MillraceError("not_found", "the library has nothing by that number");
  return { id: Number(digits), isHls: ending === "m3u8" };
}

/** A channel. The head of one says what it is without starting it: servers ask to learn whether viewers can share it. */
async function live(c: HttpContext, of: Parts): Promise<Response> {
  const { id: item, isHls } = await named(c, of);
  const { parts } = of;
  if (!isHls) {
    if (c.req.raw.method === "HEAD") {
      const isThere = await parts.api.catalogue.item(item) !== null;
      return isThere ? new Response(null, { headers: { "content-type": OUTPUT_TYPES.ts } }) : text("", 404);
    }
    return await itemResponse(c, parts, { item, fileIndex: null }, OUTPUT_TYPES.ts);
  }
  return await hlsOfItem(c, parts, item);
}

/** What a channel sent in the minutes from a time on, in UTC. */
async function archive(c: HttpContext, of: Parts, start: string, minutes: string): Promise<Response> {
  const { id: item } = await named(c, of);
  const [, day, hour, minute, second = "00"] = /^(\d{4}-\d\d-\d\d)[:_ ](\d\d)[-:](\d\d)(?:[-:](\d\d))?$/.exec(start) ??
    [];
  const startMs = day === undefined ? NaN : Date.parse(`${day}T${hour}:${minute}:${second}Z`);
  if (Number.isNaN(startMs) || !/^\d{1,4}$/.test(minutes)) {
    throw new MillraceError("invalid_argument", "a start as YYYY-MM-DD:HH-MM and a number of minutes are expected");
  }
  if (c.req.raw.method === "HEAD") return new Response(null, { headers: { "content-type": OUTPUT_TYPES.ts } });
  const past = { startS: startMs / 1000, durationS: Math.max(1, Number(minutes)) * 60 };
  return await itemResponse(c, of.parts, { item, fileIndex: null }, OUTPUT_TYPES.ts, past);
}

/** A film, or an episode of a series. */
async function film(c: HttpContext, of: Parts, isEpisode: boolean): Promise<Response> {
  const { id } = await named(c, of);
  const wanted = isEpisode ? episodeOf(id) : { item: id, fileIndex: null };
  return await itemResponse(c, of.parts, wanted, OUTPUT_TYPES.ts);
}
