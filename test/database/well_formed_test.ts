/** Texts that earlier releases kept as they came. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { createClient } from "@libsql/client";
import { Kysely, sql } from "kysely";
import { storeDialect } from "../../src/database/dialect.ts";
import { libsqlClient } from "../../src/database/sql-client.ts";
import { migrate, WELL_FORMED } from "../../src/database/migrations.ts";
import type { Schema } from "../../src/database/schema.ts";
import { wellFormed } from "../../src/database/well-formed.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("wellFormed() puts one U+FFFD in place of each half of a letter, and leaves all other texts alone", () => {
  const bytes = (...parts: (string | number[])[]) =>
    new Uint8Array(parts.flatMap((part) => typeof part === "string" ? [...new TextEncoder().encode(part)] : part));
  const half = [0xed, 0xa0, 0xbd];
  assertEquals(wellFormed(bytes("News ", half)), "News \ufffd");
  assertEquals(wellFormed(bytes(half, half, "한국 📺", half)), "\ufffd\ufffd한국 📺\ufffd");
  assertEquals(wellFormed(bytes('{"title":"News \\ud83d"}')), '{"title":"News \\ufffd"}');
  for (const text of ["", "한국 방송", "📺", '{"title":"\\ud83d\\udcfa"}', "\ufffd"]) {
    assertEquals(wellFormed(bytes(text)), null, text);
  }
});

test("migrate() mends the texts that earlier versions kept, page by page, before a step reads them", async () => {
  for (const from of [2, 4, WELL_FORMED - 1]) {
    const db = new Kysely<Schema>({
      dialect: storeDialect(libsqlClient(createClient({ url: ":memory:" })), new FakeClock()),
    });
    await migrate(db, from);
    // Not as a parameter: the dialect mends those.
    await sql`WITH RECURSIVE n(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM n WHERE id < 601)
      INSERT INTO playlist_items (owner, title, description, poster, subcategory, tags, tvg_id, tvg_name, tvg_logo,
        infohash, content_type, transport_type, is_live, is_favorite, is_multi_vod, is_multi_tfile, is_wrapped_url, locked,
        auto_search, enabled, is_deleted, external_playlist_id, media_group, hash, hash_v2, created_at, updated_at)
      SELECT '', '한국', '', '', '', CASE WHEN id % 300 = 1 THEN '["News \\ud83d"]' ELSE '["한국 \\ud83d\\udcfa"]' END,
        '', '', '', '', 'unknown', 'bt', -1, 0, 0, 0, 0, 0, 0, 1, 0, -1, 'g', 'h', 'h2', 5, 6 FROM n`.execute(db);
    await migrate(db);
    const items = await db.selectFrom("playlist_items").select(["id", "title", "tags"]).orderBy("id").execute();
    assertEquals(items.length, 601);
    assertEquals(new Set(items.map(({ title }) => title)), new Set(["한국"]));
    const mended = items.filter(({ tags }) => tags === '["News \\ufffd"]').map(({ id }) => id);
    assertEquals(mended, [1, 301, 601], `from version ${from}`);
    assertEquals(items[1]!.tags, '["한국 \\ud83d\\udcfa"]');
    await db.destroy();
  }
});
