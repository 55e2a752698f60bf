/** What is on: programmes of the library's channels, merged from all guides, at the times of the channel's `tvg-shift`. */
import { type RawBuilder, sql } from "kysely";
import { nextTurn } from "../../bytes/turn.ts";
import type { Db } from "../matches.ts";
import type { ProgrammeDetails } from "./keep.ts";
import type { XmltvText } from "./xmltv-read.ts";

/** A programme of a channel. Times are Unix seconds. */
export interface Programme extends XmltvText {
  readonly start: number;
  readonly stop: number;
  readonly categories: readonly string[];
  /** Empty: none. */
  readonly icon: string;
  readonly episode: string;
  readonly year: number | null;
  /** In further languages. */
  readonly more: readonly XmltvText[];
}

/** No programme that is on began longer ago than this, seconds, and none is next that begins later. */
const NEAR_S = 86_400;
/** Longest shift, seconds. */
const MAX_SHIFT_S = 86_400;
/** Programmes of one channel read at once: three weeks have some 1,000. */
const MAX_PROGRAMMES = 4000;

/** SQL: by how many seconds the programmes of a row of `playlist_items` are later than its guide says. */
export const SHIFT_S = sql<number>`CAST(max(-${sql.lit(MAX_SHIFT_S)}, min(${sql.lit(MAX_SHIFT_S)},
  coalesce(playlist_items.imported ->> '$.attributes."tvg-shift"', 0) * 3600)) AS INTEGER)`;

/** SQL condition: a row of `guide_matches` is one that counts for `group`. Names count where no guide has the id. */
const counts = (group: RawBuilder<unknown>) =>
  sql`guide_matches.media_group = ${group} AND guide_matches.rank / 2 = (
    SELECT min(best.rank) / 2 FROM guide_matches AS best WHERE best.media_group = ${group})`;

/** SQL expression, JSON: the programme of a row of `programmes`, `shift` seconds later. */
const programmeJson = (shift: RawBuilder<unknown>) =>
  sql`json_object('start', start + ${shift}, 'stop', stop + ${shift}, 'language', details ->> 'lang',
    'title', programmes.title, 'subtitle', programmes.subtitle, 'description', programmes.description,
    'categories', details -> 'categories', 'icon', details ->> 'icon', 'episode', details ->> 'episode',
    'year', details -> 'year')`;

/** SQL expression for the JSON of what is on a row of `playlist_items` at `nowS`, and what is next; each may be null. */
export function nowAndNextJson(nowS: number): RawBuilder<string> {
  const group = sql.ref("playlist_items.media_group");
  const one = (when: RawBuilder<unknown>) =>
    sql`(SELECT ${programmeJson(sql.ref("shifted.by_s"))} FROM (SELECT ${SHIFT_S} AS by_s) AS shifted
      CROSS JOIN guide_matches CROSS JOIN programmes ON programmes.channel = guide_matches.channel
      WHERE ${counts(group)} AND ${when} LIMIT 1)`;
  const now = sql`(CAST(${nowS} AS INTEGER) - shifted.by_s)`;
  const on = sql`start <= ${now} AND start > ${now} - ${sql.lit(NEAR_S)} AND stop > ${now}
    ORDER BY rank, source, start DESC`;
  const next = sql`start > ${now} AND start < ${now} + ${sql.lit(NEAR_S)} ORDER BY rank, source, start`;
  return sql`json_object('now', json(${one(on)}), 'next', json(${one(next)}))`;
}

interface Row {
  readonly channel: number;
  readonly start: number;
  readonly stop: number;
  readonly title: string;
  readonly subtitle: string;
  readonly description: string;
  readonly details: string;
}

/**
 * The programmes of a media group that are on between two times, Unix seconds, in their order and as its guides say, without
 * a shift. The first guide counts; others fill its gaps.
 */
export async function programmesOf(db: Db, group: string, fromS: number, toS: number): Promise<Programme[]> {
  const { rows } = await sql<Row>`SELECT programmes.channel, start, stop, title, subtitle, description, details
    FROM guide_matches CROSS JOIN programmes ON programmes.channel = guide_matches.channel
    WHERE ${counts(sql`${group}`)} AND start < ${toS} AND start > ${fromS - NEAR_S} AND stop > ${fromS}
    ORDER BY rank, source, start LIMIT ${MAX_PROGRAMMES}`.execute(db);
  await nextTurn();
  let merged: Row[] = [];
  for (let at = 0; at < rows.length;) {
    const { channel } = rows[at]!;
    let end = at;
    while (rows[end]?.channel === channel) end++;
    merged = merged.length === 0 ? rows.slice(at, end) : withGapsFilled(merged, rows.slice(at, end));
    at = end;
  }
  return merged.map(programmeOf);
}

/** Both lists are in order. */
function withGapsFilled(first: readonly Row[], others: readonly Row[]): Row[] {
  const all: Row[] = [];
  let at = 0;
  for (const other of others) {
    while (at < first.length && first[at]!.start <= other.start) all.push(first[at++]!);
    const isFree = (first[at - 1]?.stop ?? 0) <= other.start && (first[at]?.start ?? Infinity) >= other.stop;
    if (isFree) all.push(other);
  }
  return [...all, ...first.slice(at)];
}

function programmeOf({ start, stop, title, subtitle, description, details }: Row): Programme {
  const { lang, texts, ...more } = JSON.parse(details) as ProgrammeDetails;
  return { start, stop, lang, title, subtitle, description, ...more, more: texts };
}
