/** Exports the playlist as an M3U list that players open and that imports back unchanged. */
import { type Kysely, sql } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import type { Store } from "../database/store.ts";
import type { PlaylistItemsTable, Schema } from "../database/schema.ts";
import { NUMBER_COLUMNS, numberOf } from "./channel-numbers.ts";
import { EXPORTED, groupOf, type ImportedEntry } from "./entry.ts";
import { GUIDE_ID, hasProgrammes } from "./guide/export.ts";
import { groupsOf } from "./group-names.ts";
import { locateItem } from "./locate.ts";
import { selectionOf } from "./listing.ts";
import type { M3uEntry, M3uHeader } from "./m3u/m3u-entry.ts";
import { writeM3u } from "./m3u/write.ts";
import { matchesOf } from "./matches.ts";
import { comesByHttp } from "./playable.ts";
import { MAY_NAME_PRIVATE } from "./private-addresses.ts";

/** Items held at once. */
const PAGE_ITEMS = 250;

/** Of MPEG TS, of HLS, and of the file as it is. */
export type PlaybackRoute = "getstream" | "manifest.m3u8" | "getfile";

/** The items to export, and how to write their addresses. */
export interface ExportRequest {
  /** Leaves out items of other owners. */
  readonly owner?: string | undefined;
  readonly category?: string | undefined;
  /** Base of playback addresses: `http://host/engine`. */
  readonly playbackBase: string;
  /** Addresses name the item instead of its stream, so that other items of its channel can stand in for it. Default false. */
  readonly failover?: boolean;
  /** Playback route for torrents. Broadcasts, which are no files, and addresses with failover have MPEG TS in place of the file. */
  readonly output: PlaybackRoute;
  /** Address of this engine's own guide, which the list names once there are programmes; else those of its lists. */
  readonly guideUrl?: string | undefined;
  /** Address of the picture of an item whose logo was uploaded with it. */
  readonly logoUrl: (id: number) => string;
  /** Makes the access key of a stream's address from its selector's name and value; absent: addresses have no key. */
  readonly keyOf?: ((selector: string, value: string) => Promise<string>) | undefined;
}

type Row =
  & Pick<
    PlaylistItemsTable,
    | "title"
    | "is_live"
    | "category"
    | "tvg_id"
    | "tvg_name"
    | "tvg_logo"
    | "url"
    | "content_id"
    | "infohash"
    | "transport_type"
    | "external_playlist_id"
    | "subcategory"
    | "poster"
    | "description"
  >
  & {
    readonly id: number;
    readonly file_index: number | null;
    readonly given_number: string | null;
    readonly is_id_given: number;
    readonly imported: string | null;
    /** 1: the caller that gave its address may name addresses in the private network. */
    readonly may_sign: number;
  };

/** Yields the list as it is now, in parts: enabled items that can be played, in the order of the library, and the guide. */
export async function* exportM3u(store: Store, request: ExportRequest): AsyncGenerator<string> {
  const snapshot = await store.snapshot();
  try {
    yield* exported(store, snapshot.db, request);
  } finally {
    await snapshot.release();
  }
}

async function* exported(store: Store, db: Kysely<Schema>, request: ExportRequest): AsyncGenerator<string> {
  const guides = request.guideUrl !== undefined && await hasProgrammes(db)
    ? [request.guideUrl]
    : (await db.selectFrom("guides").select("url").distinct().orderBy("url").execute()).map(({ url }) => url);
  const header: M3uHeader = { attributes: guides.length === 0 ? {} : { "url-tvg": guides.join(",") } };
  yield* writeM3u(header, entries(store, db, request));
}

async function* entries(store: Store, db: Kysely<Schema>, request: ExportRequest): AsyncGenerator<M3uEntry> {
  const { owner, category } = request;
  const ids = await matchesOf(store).of(db, selectionOf({ owner, category, isEnabled: true }));
  for (let from = 0; from < ids.length; from += PAGE_ITEMS) {
    await nextTurn();
    const wanted = [...ids.subarray(from, from + PAGE_ITEMS)];
    const found = await db.selectFrom("playlist_items").select([
      MAY_NAME_PRIVATE.as("may_sign"),
      NUMBER_COLUMNS.given_number.as("given_number"),
      NUMBER_COLUMNS.is_id_given.as("is_id_given"),
      "id",
      "title",
      "is_live",
      "category",
      GUIDE_ID.as("tvg_id"),
      "tvg_name",
      "tvg_logo",
      "url",
      "content_id",
      "infohash",
      "file_index",
      "transport_type",
      "external_playlist_id",
      "subcategory",
      "poster",
      "description",
      "imported",
    ]).where("id", "in", sql<number>`(SELECT value FROM json_each(${JSON.stringify(wanted)}))`).execute();
    const byId = new Map(found.map((row) => [row.id, row]));
    const page = wanted.map((id) => byId.get(id)).filter((row) => row !== undefined);
    const urls = await Promise.all(page.map((row) => playbackUrl(row, request)));
    for (const [index, row] of page.entries()) {
      const url = urls[index]!;
      // Films have no channel number.
      if (url !== null) yield entryOf(row, url, row.is_live === 0 ? null : await numberOf(db, row), request);
    }
  }
}

/**
 * Address for the player: this engine's for torrents, and with failover for channels; the item's own for everything else;
 * null when there is nothing to play yet.
 */
async function playbackUrl(row: Row, request: ExportRequest): Promise<string | null> {
  const { playbackBase, keyOf } = request;
  const isFile = row.is_live === 0 && request.failover !== true;
  const output = request.output === "getfile" && !isFile ? "getstream" : request.output;
  const selector = selectorOf(row);
  const isTorrent = row.transport_type === "bt";
  if (isTorrent && selector === null) return null;
  if (request.failover === true && (isTorrent || comesByHttp(row))) {
    const id = String(row.id);
    return `${playbackBase}/${output}?item=${id}${keyOf === undefined ? "" : `&key=${await keyOf("item", id)}`}`;
  }
  if (!isTorrent || selector === null) return row.url;
  const [name, value] = selector;
  // A signed address is fetched as if a caller on this machine had named it.
  const isSigned = keyOf !== undefined && (name !== "url" || row.may_sign);
  const key = !isSigned ? "" : `&key=${await keyOf(name, value)}`;
  const file = row.file_index === null ? "" : `&_idx=${row.file_index}`;
  return `${playbackBase}/${output}?${name}=${encodeURIComponent(value)}${file}${key}`;
}

/** Name and value of the playback parameter that names an item's stream; null when there is nothing to play yet. */
export function selectorOf(
  { content_id, infohash, url }: Pick<Row, "content_id" | "infohash" | "url">,
): readonly [name: "content_id" | "infohash" | "url" | "magnet", value: string] | null {
  // A magnet carries more than any id: trackers, peers. Private torrents have no other way to find them.
  if (url !== null && /^magnet:/i.test(url)) return ["magnet", url];
  if (content_id !== null) return ["content_id", content_id];
  if (infohash !== "") return ["infohash", infohash];
  return url === null ? null : ["url", url];
}

/** Attributes of which one says that a channel can be watched later. */
const CATCHUP = ["catchup", "catchup-type", "catchup-source"];

/** Players ask this engine for what a channel sent earlier: what the list says holds for the provider's own addresses. */
function setCatchup(attributes: Record<string, string>, url: string): void {
  delete attributes["catchup-type"];
  attributes["catchup"] = "default";
  attributes["catchup-source"] = `${url}&start_from={utc}`;
}

function entryOf(row: Row, url: string, number: string | null, request: ExportRequest): M3uEntry {
  const imported: ImportedEntry = row.imported === null
    ? { title: row.title, durationSeconds: -1, attributes: {}, group: "", directives: [] }
    : JSON.parse(row.imported);
  const attributes: Record<string, string> = { ...imported.attributes };
  const set = (name: string, value: string) => {
    if (value !== "") attributes[name] = value;
  };
  set("tvg-id", row.tvg_id);
  set("tvg-name", row.tvg_name);
  set("tvg-logo", row.tvg_logo.startsWith("data:") ? request.logoUrl(row.id) : row.tvg_logo);
  if (number !== null) attributes["tvg-chno"] = number;
  if (!attributes["group-title"] && imported.group === "") set("group-title", row.category ?? "");
  if (request.failover === true && comesByHttp(row) && CATCHUP.some((name) => attributes[name])) {
    setCatchup(attributes, url);
  }
  const located = locateItem(url, imported.durationSeconds);
  const [group = "", ...more] = groupsOf(groupOf({ attributes, group: imported.group }));
  if (row.external_playlist_id >= 0) attributes[EXPORTED.external] = "1";
  if (row.is_live !== located.is_live) attributes[EXPORTED.live] = String(row.is_live);
  if (row.transport_type !== located.transport_type) attributes[EXPORTED.transport] = row.transport_type;
  if ((row.category ?? "") !== group) attributes[EXPORTED.category] = row.category ?? "";
  if (row.subcategory !== more.join("; ")) attributes[EXPORTED.subcategory] = row.subcategory;
  set(EXPORTED.poster, row.poster);
  set(EXPORTED.description, row.description);
  return { ...imported, title: row.title, attributes, url };
}
