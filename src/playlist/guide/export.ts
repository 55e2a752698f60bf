/** Writes the guide of the library's channels as XMLTV, with the channel ids of the exported list. */
import { type Kysely, sql } from "kysely";
import { escapeXml } from "../../bytes/xml.ts";
import { nextTurn } from "../../bytes/turn.ts";
import type { Schema } from "../../database/schema.ts";
import type { Store } from "../../database/store.ts";
import { NUMBER_COLUMNS, numberOf } from "../channel-numbers.ts";
import type { Db } from "../matches.ts";
import { type Programme, programmesOf } from "./programmes.ts";
import { writeXmltvTime } from "./xmltv-time.ts";

/** Items held at once. */
const PAGE_ITEMS = 250;
/** Most channels of one guide: more than any player takes. */
const MAX_CHANNELS = 50_000;
/** Characters gathered before a part is yielded. */
const PART_CHARS = 64 * 1024;

/**
 * SQL expression: the id in guides of a row of `playlist_items`: its own; for one that was found by name, and has no `tvg-id`
 * that counts, the id of the guide that has it.
 */
export const GUIDE_ID = sql<
  string
>`CASE WHEN substr(playlist_items.media_group, 1, 3) = 'id:' THEN playlist_items.tvg_id
  ELSE coalesce((SELECT xmltv_id FROM guide_matches JOIN guide_channels ON guide_channels.id = channel
    WHERE guide_matches.media_group = playlist_items.media_group ORDER BY rank, guide_matches.source LIMIT 1),
    playlist_items.tvg_id) END`;

/** Whether any programme is kept. */
export async function hasProgrammes(db: Kysely<Schema>): Promise<boolean> {
  return await db.selectFrom("programmes").select("id").limit(1).executeTakeFirst() !== undefined;
}

/** Which channels and times to write. */
export interface XmltvRequest {
  /** Leaves out items of other owners. */
  readonly owner?: string | undefined;
  readonly category?: string | undefined;
  /** Programmes that end after `fromS` and begin before `toS`, Unix seconds. */
  readonly fromS: number;
  readonly toS: number;
  /** Address of the picture of an item whose logo was uploaded with it. */
  readonly logoUrl: (id: number) => string;
}

interface Channel {
  readonly id: string;
  readonly group: string;
}

/**
 * Yields the guide as it is now, in parts: the channels of enabled items that have one, named by title and number, then their
 * programmes. Players apply the `tvg-shift` of the list, so times are those of the guides.
 */
export async function* exportXmltv(store: Store, request: XmltvRequest): AsyncGenerator<string> {
  const snapshot = await store.snapshot();
  try {
    let part = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tv SYSTEM "xmltv.dtd">\n' +
      '<tv generator-info-name="millrace">\n';
    for await (const text of elements(snapshot.db, request)) {
      part += text;
      if (part.length < PART_CHARS) continue;
      yield part;
      part = "";
    }
    yield `${part}</tv>\n`;
  } finally {
    await snapshot.release();
  }
}

async function* elements(db: Db, request: XmltvRequest): AsyncGenerator<string> {
  const channels: Channel[] = [];
  for await (const { channel, text } of channelsOf(db, request)) {
    channels.push(channel);
    yield text;
  }
  for (const { id, group } of channels) {
    const written = ` channel="${escapeXml(id)}"`;
    const programmes = await programmesOf(db, group, request.fromS, request.toS);
    yield programmes.map((programme) => programmeXml(written, programme)).join("");
  }
}

/** Each id once; items that share it are the same channel. */
async function* channelsOf(
  db: Db,
  { owner = "", category, logoUrl }: XmltvRequest,
): AsyncGenerator<{ channel: Channel; text: string }> {
  const ids = new Set<string>();
  for (let after = 0;;) {
    let query = db.selectFrom("playlist_items").select([
      NUMBER_COLUMNS.given_number.as("given_number"),
      NUMBER_COLUMNS.is_id_given.as("is_id_given"),
      GUIDE_ID.as("guide_id"),
      sql<number>`EXISTS (SELECT 1 FROM guide_matches WHERE guide_matches.media_group = playlist_items.media_group)`
        .as("is_matched"),
      "id",
      "owner",
      "enabled",
      "title",
      "tvg_logo",
      "media_group",
    ]).where("is_deleted", "=", 0).where("id", ">", after).orderBy("id").limit(PAGE_ITEMS);
    if (category !== undefined) query = query.where("category", "=", category);
    const page = await query.execute();
    for (const row of page) {
      const { guide_id: id, media_group: group } = row;
      const isWanted = row.is_matched === 1 && row.enabled === 1 && (owner === "" || ["", owner].includes(row.owner));
      if (!isWanted || ids.has(id) || ids.size === MAX_CHANNELS) continue;
      ids.add(id);
      const names = [row.title, await numberOf(db, row)].map((name) => element("display-name", name));
      const logo = row.tvg_logo.startsWith("data:") ? logoUrl(row.id) : row.tvg_logo;
      const text = `<channel id="${escapeXml(id)}">\n${names.join("")}${icon(logo)}</channel>\n`;
      yield { channel: { id, group }, text };
    }
    const last = page[page.length - 1];
    if (last === undefined || page.length < PAGE_ITEMS) return;
    after = last.id;
    await nextTurn();
  }
}

/** Elements in the order of the DTD. */
function programmeXml(channel: string, programme: Programme): string {
  const { start, stop, year, categories, episode, more } = programme;
  const texts = [programme, ...more];
  // A description in one language stands for all of them.
  const said = (name: string, key: "title" | "subtitle" | "description") =>
    texts.filter((text, at) => text[key] !== "" && texts.findIndex((one) => one[key] === text[key]) === at)
      .map((text) => element(name, text[key], text.lang)).join("");
  return `<programme start="${writeXmltvTime(start)}" stop="${writeXmltvTime(stop)}"${channel}>\n` +
    said("title", "title") + said("sub-title", "subtitle") + said("desc", "description") +
    (year === null ? "" : element("date", String(year))) +
    categories.map((category) => element("category", category)).join("") + icon(programme.icon) +
    (episode === "" ? "" : `  <episode-num system="onscreen">${escapeXml(episode)}</episode-num>\n`) +
    "</programme>\n";
}

function element(name: string, text: string, lang = ""): string {
  return `  <${name}${lang === "" ? "" : ` lang="${escapeXml(lang)}"`}>${escapeXml(text)}</${name}>\n`;
}

function icon(url: string): string {
  return url === "" ? "" : `  <icon src="${escapeXml(url)}"/>\n`;
}
