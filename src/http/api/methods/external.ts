/** "External playlists" of section 4.4, section 2.9. */
import * as z from "zod";
import type { ExternalPlaylist } from "../../../playlist/external/external-playlist.ts";
import { type Method, methodsWith } from "../method.ts";
import { ERROR_CODE, NONE, OK, SHORT_TEXT, TASK_ID } from "../schemas.ts";

const defineMethod = methodsWith<"lists">();

const ID = z.int().min(1).describe("Number of an external playlist");
const NAME = SHORT_TEXT.describe("Its name; any text");
const LOGIN = SHORT_TEXT.optional().describe("Name for HTTP Basic authentication");
const USER_AGENT = SHORT_TEXT.optional().describe(
  "Our addition: the name under which it is fetched, such as that of a player; empty: the engine's own",
);
const MAX_CONNECTIONS = z.int().min(0).max(1000).optional().describe(
  "Our addition: connections that its provider allows at once; 0: any number",
);
const PASSWORD = SHORT_TEXT.optional().describe("Password for HTTP Basic authentication");
/** Seconds since 1970. */
const TIME = z.int().min(0);
const INTERVAL = z.int().min(0).describe("Seconds: at least 60, or 0 for updates by hand alone");
const CATEGORY = SHORT_TEXT.describe("Category of its items; empty: their own group");
const TYPE = z.enum(["content", "broadcast"]);
const EXTERNAL_PLAYLIST = z.object({
  id: ID,
  type: TYPE,
  category: z.string(),
  name: z.string(),
  url: z.string(),
  login: z.string(),
  password: z.literal("").describe("Passwords are never told"),
  user_agent: z.string().describe("Our addition: the name under which it is fetched; empty: the engine's own"),
  max_connections: z.int().describe("Our addition: connections that its provider allows at once; 0: any number"),
  update_interval: INTERVAL,
  updated_at: TIME,
  last_update: TIME,
  next_update: TIME,
  last_error: z.string().describe("Our addition: why the last fetch failed; empty when it did not"),
  last_error_code: z.union([z.literal(""), ERROR_CODE]),
}).meta({ id: "ExternalPlaylist" });

function externalJson(list: ExternalPlaylist): z.input<typeof EXTERNAL_PLAYLIST> {
  const {
    userAgent,
    maxConnections,
    updateInterval,
    updatedAt,
    lastUpdate,
    nextUpdate,
    lastError,
    lastErrorCode,
    ...same
  } = list;
  return {
    ...same,
    password: "",
    user_agent: userAgent,
    max_connections: maxConnections,
    update_interval: updateInterval,
    updated_at: updatedAt,
    last_update: lastUpdate,
    next_update: nextUpdate,
    last_error: lastError,
    last_error_code: lastErrorCode,
  };
}

/** The methods of external playlists. All are private, also for callers elsewhere. */
export const EXTERNAL_METHODS: readonly Method[] = [
  defineMethod({
    name: "external_playlist_add",
    summary: "Adds a playlist that is fetched regularly; returns its id. Its items are in playlist_get.",
    public: false,
    remote: true,
    params: z.object({
      type: TYPE.describe("broadcast: entries are live unless they tell otherwise"),
      category: CATEGORY,
      name: NAME,
      url: z.string().max(8192).describe("Address of the M3U list"),
      update_interval: INTERVAL,
      update_now: z.boolean().default(true).describe("Fetches it at once, in the background"),
      login: LOGIN,
      password: PASSWORD,
      user_agent: USER_AGENT,
      max_connections: MAX_CONNECTIONS,
    }),
    result: ID,
    handle: (params, { parts, mayFetchPrivate }) =>
      parts.lists.addExternal({
        type: params.type,
        category: params.category,
        name: params.name,
        url: params.url,
        updateInterval: params.update_interval,
        login: params.login,
        password: params.password,
        userAgent: params.user_agent,
        maxConnections: params.max_connections,
        allowPrivate: mayFetchPrivate,
      }, params.update_now),
  }),
  defineMethod({
    name: "external_playlist_delete",
    summary: "Deletes an external playlist and everything that came from it.",
    public: false,
    remote: true,
    params: z.object({ id: ID }),
    result: OK,
    async handle({ id }, { parts }) {
      await parts.lists.deleteExternal(id);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "external_playlist_update",
    summary: "Fetches an external playlist now and returns when its items are up to date.",
    public: false,
    remote: true,
    params: z.object({ id: ID }),
    result: OK,
    async handle({ id }, { parts }) {
      await parts.lists.updateExternal(id);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "external_playlist_edit",
    summary:
      "Changes an external playlist. An absent login or password stays, unless url leads to another server; an empty login removes both.",
    refusesUnknown: true,
    public: false,
    remote: true,
    params: z.object({
      id: ID,
      category: CATEGORY,
      name: NAME,
      update_interval: INTERVAL,
      url: z.string().max(8192).optional().describe(
        "Our addition: where it has moved to; its items stay what they are",
      ),
      login: LOGIN,
      password: PASSWORD,
      user_agent: USER_AGENT,
      max_connections: MAX_CONNECTIONS,
    }),
    result: OK,
    async handle(
      { id, update_interval: updateInterval, user_agent: userAgent, max_connections: maxConnections, ...edit },
      { parts, mayFetchPrivate: allowPrivate },
    ) {
      await parts.lists.editExternal(id, { ...edit, updateInterval, userAgent, maxConnections, allowPrivate });
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "external_playlist_get",
    summary: "An external playlist, or all of them.",
    public: false,
    remote: true,
    params: z.object({ id: ID.optional() }),
    result: z.object({ playlist: z.array(EXTERNAL_PLAYLIST) }),
    handle: async ({ id }, { parts }) => ({ playlist: (await parts.lists.external.get(id)).map(externalJson) }),
  }),
  defineMethod({
    name: "update_all_external_playlists",
    summary: "Fetches all external playlists in the background; get_task follows it.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({ task_id: TASK_ID }),
    handle: (_params, { parts }) => ({ task_id: parts.lists.updateAllExternal() }),
  }),
];
