/**
 * The front of a qBittorrent (`--front qbittorrent`): Sonarr, Radarr and programs like them add torrents by its Web API, wait
 * until they are whole, and take the files. What is added is also in the library.
 */
import { toHex } from "../../../bytes/hex.ts";
import { MillraceError } from "../../../errors.ts";
import type { Clock } from "../../../ports.ts";
import type { HttpContext } from "../../context.ts";
import { text } from "../../guard.ts";
import type { Front, FrontGround } from "../front.ts";
import { basicCredentials } from "../logins.ts";
import { addRoute, withForm } from "../requests.ts";
import { addTorrents, field, isTrue, limitOf, removeItem, tagsOf } from "./adding.ts";
import { WholeDownloads } from "./downloads.ts";
import { fileFields, preferences, propertyFields, torrentFields, transferFields } from "./facts.ts";
import { QbittorrentList, type QbittorrentTorrent } from "./kept.ts";

/** The version whose interface this is. Clients choose words by that of the API. */
const VERSION = "v5.1.0";
const API_VERSION = "2.11.4";
/** Largest form, bytes: a transport file of 16 MiB and the fields around it. */
const MAX_FORM_BYTES = 17 * 1024 * 1024;
/** Largest form of a sign-in, bytes. */
const MAX_LOGIN_BYTES = 16 * 1024;
/** How long a sign-in lasts that is not used, ms, and how many there are. */
const SIGNED_IN_MS = 3_600_000;
const MAX_SIGNED_IN = 256;

interface Of extends FrontGround {
  readonly list: QbittorrentList;
  readonly downloads: WholeDownloads;
}
type Handle = (c: HttpContext, of: Of, form: FormData) => Promise<Response> | Response;

/** See the page on fronts. */
export const QBITTORRENT: Front = {
  name: "qbittorrent",
  access: "own",
  open: (ground) => {
    const { parts } = ground;
    const opening = QbittorrentList.open(parts.frontStates).then((list): Of => {
      const downloads = new WholeDownloads(parts, list);
      downloads.look();
      return { ...ground, list, downloads };
    });
    const signedIn = new SignedIn(parts.clock);
    return (app, prefix) => {
      const at = (path: string) => `${prefix}/api/v2/${path}`;
      addRoute(app, parts, "POST", at("auth/login"), (c) => login(c, ground, signedIn));
      addRoute(app, parts, "POST", at("auth/logout"), (c) => {
        signedIn.forget(c);
        return text("", 200);
      });
      for (const [path, [methods, handle]] of Object.entries(ROUTES)) {
        addRoute(app, parts, methods, at(path), async (c) => {
          if (!await mayUse(c, ground, signedIn)) return text("Forbidden", 403);
          const of = await opening;
          // Clients also ask by a POST without a body.
          const isForm = c.req.raw.method === "POST" && c.req.header("content-type") !== undefined;
          if (!isForm) return await handle(c, of, new FormData());
          return await withForm(c, parts, MAX_FORM_BYTES, async (form) => await handle(c, of, form));
        });
      }
    };
  },
};

/** Cookies of those who signed in. */
class SignedIn {
  readonly #clock: Clock;
  /** When each ends, monotonic ms; the one used longest ago first. */
  readonly #ends = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The value of a new cookie. */
  add(): string {
    const id = toHex(crypto.getRandomValues(new Uint8Array(16)));
    this.#use(id);
    if (this.#ends.size > MAX_SIGNED_IN) this.#ends.delete(this.#ends.keys().next().value!);
    return id;
  }

  has(c: HttpContext): boolean {
    const id = idOf(c);
    const isKnown = (this.#ends.get(id) ?? -Infinity) > this.#clock.monotonic();
    if (isKnown) this.#use(id);
    else this.#ends.delete(id);
    return isKnown;
  }

  forget(c: HttpContext): void {
    this.#ends.delete(idOf(c));
  }

  #use(id: string): void {
    this.#ends.delete(id);
    this.#ends.set(id, this.#clock.monotonic() + SIGNED_IN_MS);
  }
}

function idOf(c: HttpContext): string {
  return /(?:^|;\s*)SID=([0-9a-f]{32})(?:;|$)/.exec(c.req.header("cookie") ?? "")?.[1] ?? "";
}

/** This machine and the local network need no account, as with other fronts; all others sign in, or send HTTP Basic. */
async function mayUse(c: HttpContext, { logins }: FrontGround, signedIn: SignedIn): Promise<boolean> {
  const { addressClass, clientHost } = c.get("caller");
  if (addressClass !== "internet" || signedIn.has(c)) return true;
  const given = basicCredentials(c.req.header("authorization"));
  return given !== null && await logins.check(given.user, given.password, clientHost, c.req.raw.signal) === "right";
}

/** Clients that were given a name send it from everywhere; a wrong one shows where the client is set up. */
async function login(c: HttpContext, { parts, logins }: FrontGround, signedIn: SignedIn): Promise<Response> {
  return await withForm(c, parts, MAX_LOGIN_BYTES, async (form) => {
    const [user, password] = [field(form, "username"), field(form, "password")];
    const { addressClass, clientHost } = c.get("caller");
    const isOpen = user === "" && password === "" && addressClass !== "internet";
    const outcome = isOpen ? "right" : await logins.check(user, password, clientHost, c.req.raw.signal);
    if (outcome === "too_often") return text("too many attempts: try again in a minute", 403);
    if (outcome === "wrong") return plain("Fails.");
    return plain("Ok.", { "set-cookie": `SID=${signedIn.add()}; HttpOnly; SameSite=Strict; Path=/` });
  });
}

/** Clients compare the whole text, so that no line ends it. */
function plain(message: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(message, { headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}

const DONE = () => plain("");
const EITHER = ["GET", "POST"];

/** What the addresses below `/api/v2` do. */
const ROUTES: Readonly<Record<string, readonly [methods: readonly string[], handle: Handle]>> = {
  "app/version": [EITHER, () => plain(VERSION)],
  "app/webapiVersion": [EITHER, () => plain(API_VERSION)],
  "app/buildInfo": [EITHER, (c) => c.json({ qt: "", libtorrent: "", boost: "", openssl: "", bitness: 64 })],
  "app/defaultSavePath": [EITHER, (_, { parts }) => plain(parts.whole.directory ?? "")],
  "app/preferences": [EITHER, (c, { parts }) => c.json(preferences(parts))],
  "torrents/info": [EITHER, async (c, of, form) => c.json(await selected(c, of, form))],
  "torrents/properties": [EITHER, async (c, of, form) => {
    return c.json(await propertyFields(named(c, of, form), of.parts, of.downloads));
  }],
  "torrents/files": [
    EITHER,
    async (c, of, form) => c.json(await fileFields(named(c, of, form), of.parts, of.downloads)),
  ],
  "torrents/trackers": [EITHER, (c, of, form) => (named(c, of, form), c.json([]))],
  "torrents/categories": [EITHER, (c, { list }) => c.json(categoryFields(list))],
  "torrents/tags": [EITHER, (c, { list }) => c.json([...new Set(list.torrents().flatMap(({ tags }) => tags))])],
  "transfer/info": [EITHER, async (c, of) => c.json(transferFields(of.parts, await all(of, of.list.torrents())))],
  "sync/maindata": [EITHER, async (c, of) => {
    const torrents = await all(of, of.list.torrents());
    const byHash = Object.fromEntries(torrents.map((one) => [String(one["hash"]), one]));
    const state = { ...transferFields(of.parts, torrents), queueing: false };
    return c.json({
      rid: 0,
      full_update: true,
      torrents: byHash,
      categories: categoryFields(of.list),
      server_state: state,
    });
  }],
  "torrents/add": [["POST"], async (c, { parts, list, downloads }, form) => {
    try {
      const count = await addTorrents(c, parts, list, form);
      downloads.look();
      return plain(count > 0 ? "Ok." : "Fails.");
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      // Clients show no more than this.
      parts.log.log("warn", "a torrent could not be added", { error });
      return plain("Fails.");
    }
  }],
  "torrents/delete": [["POST"], async (_, { parts, list, downloads }, form) => {
    for (const torrent of hashes(list, form)) {
      downloads.stop(torrent.hash);
      list.remove(torrent.hash);
      await removeItem(parts, torrent);
      if (isTrue(form, "deleteFiles")) void downloads.removeFiles(torrent.hash);
    }
    return DONE();
  }],
  ...changes(["torrents/stop", "torrents/pause"], ({ downloads, list }, { hash }) => {
    list.change(hash, { isStopped: true });
    downloads.stop(hash);
  }),
  ...changes(["torrents/start", "torrents/resume"], ({ list }, { hash }) => list.change(hash, { isStopped: false })),
  ...changes(["torrents/setForceStart"], ({ list }, { hash }, form) => {
    if (isTrue(form, "value")) list.change(hash, { isStopped: false });
  }),
  ...changes(
    ["torrents/setCategory"],
    ({ list }, { hash }, form) => list.change(hash, { category: field(form, "category") }),
  ),
  ...changes(["torrents/setShareLimits"], ({ list }, { hash }, form) => {
    list.change(hash, {
      ratioLimit: limitOf(form, "ratioLimit"),
      seedingTimeLimit: limitOf(form, "seedingTimeLimit"),
      inactiveSeedingTimeLimit: limitOf(form, "inactiveSeedingTimeLimit"),
    });
  }),
  ...changes(["torrents/addTags"], ({ list }, { hash, tags }, form) => {
    list.change(hash, { tags: [...tags, ...tagsOf(field(form, "tags"))] });
  }),
  ...changes(["torrents/removeTags"], ({ list }, { hash, tags }, form) => {
    const gone = tagsOf(field(form, "tags"));
    list.change(hash, { tags: gone.length === 0 ? [] : tags.filter((tag) => !gone.includes(tag)) });
  }),
  // Torrents begin in the order in which they came; this is what clients know as "there is no queue".
  "torrents/topPrio": [["POST"], () => text("torrents have no priorities here", 409)],
  "torrents/createCategory": [["POST"], (_, { list }, form) => {
    const name = field(form, "category");
    if (name === "") throw new MillraceError("invalid_argument", "category: a name is expected");
    if (list.categories().includes(name)) throw new MillraceError("conflict", "there is such a category");
    list.addCategory(name);
    return DONE();
  }],
  "torrents/removeCategories": [["POST"], (_, { list }, form) => {
    for (const name of field(form, "categories").split("\n")) list.removeCategory(name.trim());
    return DONE();
  }],
};

/** Routes that change each torrent of `hashes`. */
function changes(
  paths: readonly string[],
  change: (of: Of, torrent: QbittorrentTorrent, form: FormData) => void,
): typeof ROUTES {
  const handle: Handle = (_, of, form) => {
    for (const torrent of hashes(of.list, form)) change(of, torrent, form);
    of.downloads.look();
    return DONE();
  };
  return Object.fromEntries(paths.map((path) => [path, [["POST"], handle] as const]));
}

/** Torrents of the field `hashes`: separated by bars, or `all`. Throws `invalid_argument` without it. */
function hashes(list: QbittorrentList, form: FormData): readonly QbittorrentTorrent[] {
  const given = field(form, "hashes").toLowerCase();
  if (given === "") {
    throw new MillraceError("invalid_argument", "hashes: infohashes with bars between them are expected");
  }
  if (given === "all") return list.torrents();
  const wanted = new Set(given.split("|"));
  return list.torrents().filter(({ hash }) => wanted.has(hash));
}

/** A parameter of an address or a form; null: absent. */
function parameter(c: HttpContext, form: FormData, name: string): string | null {
  return c.req.query(name) ?? (form.has(name) ? field(form, name) : null);
}

/** The torrent that `hash` names. Throws `not_found`. */
function named(c: HttpContext, { list }: Of, form: FormData): QbittorrentTorrent {
  const torrent = list.torrent((parameter(c, form, "hash") ?? "").toLowerCase());
  if (torrent === undefined) throw new MillraceError("not_found", "the list has no such torrent");
  return torrent;
}

function all({ parts, downloads }: Of, torrents: readonly QbittorrentTorrent[]) {
  return Promise.all(torrents.map((torrent) => torrentFields(torrent, parts, downloads)));
}

/** The torrents that a client asks for, in the order in which they were added. */
async function selected(c: HttpContext, of: Of, form: FormData) {
  const [category, tag, given] = ["category", "tag", "hashes"].map((name) => parameter(c, form, name));
  const wanted = given ? new Set(given.toLowerCase().split("|")) : null;
  const filter = parameter(c, form, "filter") ?? "all";
  const torrents = of.list.torrents().filter((one) =>
    (category === null || one.category === category) &&
    (!tag || one.tags.includes(tag)) &&
    (wanted === null || wanted.has(one.hash)) &&
    (filter !== "completed" || one.completedS !== null) &&
    (filter !== "downloading" || one.completedS === null)
  );
  return await all(of, torrents);
}

/** Categories have no folders of their own. */
function categoryFields(
  list: QbittorrentList,
): Readonly<Record<string, { readonly name: string; readonly savePath: string }>> {
  return Object.fromEntries(list.categories().map((name) => [name, { name, savePath: "" }]));
}
