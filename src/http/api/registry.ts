/** All methods of the JSON API, in groups. */
import type { Method } from "./method.ts";
import { ACCOUNT_METHODS } from "./methods/account.ts";
import { DEVICE_METHODS } from "./methods/devices.ts";
import { ACCESS_METHODS } from "./methods/access.ts";
import { ANALYZE_METHODS } from "./methods/analyze.ts";
import { BROADCAST_METHODS } from "./methods/broadcasts.ts";
import { CAST_METHODS } from "./methods/casts.ts";
import { CHECK_METHODS } from "./methods/checks.ts";
import { CONTENT_METHODS } from "./methods/content.ts";
import { DEFERRED_METHODS } from "./methods/deferred.ts";
import { EXTERNAL_METHODS } from "./methods/external.ts";
import { GUIDE_METHODS } from "./methods/guide.ts";
import { ICON_METHODS } from "./methods/icons.ts";
import { IMPORT_METHODS } from "./methods/imports.ts";
import { LIST_METHODS } from "./methods/lists.ts";
import { OPERATING_METHODS } from "./methods/operating.ts";
import { PLAYER_METHODS } from "./methods/players.ts";
import { PLAYLIST_METHODS } from "./methods/playlist.ts";
import { CHOICE_METHODS } from "./methods/choices.ts";
import { POSITION_METHODS } from "./methods/positions.ts";
import { RECORDING_METHODS } from "./methods/recordings.ts";
import { SEARCH_METHODS } from "./methods/search.ts";
import { STATUS_METHODS } from "./methods/status.ts";
import { STORAGE_METHODS } from "./methods/storage.ts";

/** Methods that belong together. */
export interface MethodGroup {
  readonly name: string;
  /** One sentence for the documentation. */
  readonly summary: string;
  readonly methods: readonly Method[];
}

/** In the order of section 4.4; our additions follow. */
export const METHOD_GROUPS: readonly MethodGroup[] = [
  {
    name: "Access and status",
    summary: "The access token, access rules, and the state of the engine.",
    methods: [...ACCESS_METHODS, ...STATUS_METHODS],
  },
  { name: "Account", summary: "Who uses the engine.", methods: [...ACCOUNT_METHODS, ...DEVICE_METHODS] },
  { name: "Players", summary: "Players within reach.", methods: [...PLAYER_METHODS, ...CAST_METHODS] },
  {
    name: "Content",
    summary: "What an id, a torrent, a broadcast or an address holds.",
    methods: [...CONTENT_METHODS, ...ANALYZE_METHODS, ...DEFERRED_METHODS, ...ICON_METHODS, ...LIST_METHODS],
  },
  {
    name: "Playlist",
    summary: "Items, their flags, the trash, imports, checks.",
    methods: [...PLAYLIST_METHODS, ...IMPORT_METHODS, ...CHECK_METHODS],
  },
  {
    name: "External playlists",
    summary: "Lists elsewhere that are fetched by their interval.",
    methods: EXTERNAL_METHODS,
  },
  { name: "Guide", summary: "What is on, and which guides say so.", methods: GUIDE_METHODS },
  { name: "Search", summary: "Titles of the playlist.", methods: SEARCH_METHODS },
  {
    name: "Positions",
    summary: "Where files were left off, and what was chosen to hear and read in them.",
    methods: [...POSITION_METHODS, ...CHOICE_METHODS],
  },
  {
    name: "Operating",
    summary: "What the engine is set to, its tasks and its log.",
    methods: OPERATING_METHODS,
  },
  { name: "Storage", summary: "What is cached of torrents.", methods: STORAGE_METHODS },
  { name: "Broadcasts", summary: "Live broadcasts that this engine sends.", methods: BROADCAST_METHODS },
  { name: "Recordings", summary: "Broadcasts and channels that are kept on disk.", methods: RECORDING_METHODS },
];

/** In the same order. */
export const METHODS: readonly Method[] = METHOD_GROUPS.flatMap(({ methods }) => methods);
