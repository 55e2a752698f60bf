import { test } from "node:test";
import { sql } from "kysely";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { type ListRequest, selectionOf } from "../../src/playlist/listing.ts";
import { lookStatement } from "../../src/playlist/matches.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { seededBelow } from "../support/random.ts";
import { textOf } from "../support/text.ts";

/** More than two pages. */
const COUNT = 1203;

test("Playlist.json() joins its pages without a gap or a double, from any offset", async () => {
  const ports = await loadPorts();
  const store = createStore(ports, { kind: "memory" });
  const playlist = new Playlist(store, new FakeClock());
  const ids: number[] = [];
  for (let i = 0; i < COUNT; i++) {
    ids.push(
      await playlist.add({ title: `item ${i}`, transportType: "bt", isLive: -1, category: i % 2 ? "odd" : "even" }),
    );
  }
  const read = async (request: ListRequest) => {
    const text = await textOf(playlist.json(request));
    return (JSON.parse(`[${text}]`) as { id: number }[]).map(({ id }) => id);
  };
  const table: [ListRequest, number[]][] = [
    [{}, ids],
    [{ limit: 500 }, ids.slice(0, 500)],
    [{ limit: 501 }, ids.slice(0, 501)],
    [{ offset: 1 }, ids.slice(1)],
    [{ offset: 700, limit: 503 }, ids.slice(700)],
    [{ offset: COUNT - 1 }, ids.slice(-1)],
    [{ offset: COUNT }, []],
    [{ offset: COUNT + 1 }, []],
    [{ limit: 0 }, []],
    [{ category: "odd", offset: 100, limit: 510 }, ids.filter((_, i) => i % 2 === 1).slice(100, 610)],
  ];
  for (const [request, expected] of table) assertEquals(await read(request), expected, JSON.stringify(request));
  assertEquals(await playlist.count({ category: "odd", limit: 5 }), Math.floor(COUNT / 2));
  const reading = playlist.json();
  const first = JSON.parse(`[${new TextDecoder().decode((await reading.next()).value)}]`) as { id: number }[];
  await playlist.remove([ids[0]!, ids[600]!]);
  const rest = await textOf(reading);
  const seen = [...first, ...JSON.parse(`[${rest.slice(1)}]`) as { id: number }[]].map(({ id }) => id);
  assertEquals(seen, ids.filter((id) => id !== ids[600]));
  assertEquals(await read({ trash: true }), [ids[0]!, ids[600]!]);
  await store.close();
});

test("listings and searches go by an index, without sorting", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  const db = await store.open();
  const table: [ListRequest, string][] = [
    [{}, "INDEX playlist_items_by_place (is_deleted=?"],
    [
      { trash: true, owner: "ann" },
      "INDEX playlist_items_by_place (is_deleted=?",
    ],
    [{ category: "news" }, "INDEX playlist_items_by_category (is_deleted=? AND category=?"],
    [{ query: "news" }, "SCAN playlist_search VIRTUAL TABLE INDEX"],
    [{ query: "news", category: "x", owner: "ann" }, "SCAN playlist_search VIRTUAL TABLE INDEX"],
  ];
  for (const [request, index] of table) {
    for (const perChannel of [false, true]) {
      const statement = lookStatement({ ...selectionOf(request), perChannel }, 7, 5);
      const { rows } = await sql<{ detail: string }>`EXPLAIN QUERY PLAN ${statement}`.execute(db);
      const plan = rows.map(({ detail }) => detail).join("; ");
      assert(plan.includes(index), `${JSON.stringify(request)}: ${plan}`);
      assert(!plan.includes("TEMP B-TREE"), `${JSON.stringify(request)}: ${plan}`);
      assert(!plan.includes("SCAN playlist_items"), `${JSON.stringify(request)}: ${plan}`);
      if (perChannel) assert(plan.includes("INDEX playlist_items_by_group"), plan);
    }
  }
  await store.close();
});

test("Playlist.json() finds parts of titles in any case and with or without diacritics", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  const playlist = new Playlist(store, new FakeClock());
  const titles = ["Télé Été", "ПЕРВЫЙ канал", 'Sky "One"', "a*b", "日本語テレビ", "It's 100%_", "Ærø Köln"];
  const ids: number[] = [];
  for (const title of titles) ids.push(await playlist.add({ title, transportType: "bt", isLive: -1 }));
  const found = async (query: string) => {
    const text = await textOf(playlist.json({ query }));
    const got = (JSON.parse(`[${text}]`) as { title: string }[]).map(({ title }) => title);
    assertEquals(await playlist.count({ query }), got.length);
    return got;
  };
  const table: [string, string[]][] = [
    ["tele", [titles[0]!]],
    ["ÉTÉ", [titles[0]!]],
    ["le e", [titles[0]!]],
    ["té", [titles[0]!]],
    ["первый К", [titles[1]!]],
    ['"one"', [titles[2]!]],
    ["a*b", [titles[3]!]],
    ["本語テ", [titles[4]!]],
    ["aro", [titles[6]!]],
    ["koeln aero", [titles[6]!]],
    ["ærø köln", [titles[6]!]],
    ["0%_", [titles[5]!]],
    ["%_", [titles[5]!]],
    ["NEAR(a b)", []],
    ["title:tele", []],
    ["", titles],
  ];
  for (const [query, expected] of table) assertEquals(await found(query), expected, query);
  await playlist.update(ids[0]!, { title: "Radio" });
  await playlist.remove([ids[1]!]);
  await playlist.clearTrash();
  assertEquals([await found("tele"), await found("adi"), await found("канал")], [[], ["Radio"], []]);
  await store.close();
});

test("Playlist.json() takes any query for text to be found", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  const playlist = new Playlist(store, new FakeClock());
  const random = seededBelow(5);
  const bits = [
    '"',
    "'",
    "*",
    "^",
    "(",
    ")",
    ":",
    "-",
    "+",
    "AND",
    "OR",
    "NOT",
    "NEAR/2",
    " ",
    "{",
    "}",
    "a",
    "é",
    "%",
    "_",
    "\\",
    ";",
    "日",
    "😀",
  ];
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: 1 + random(8) }, () => bits[random(bits.length)]).join("");
    await playlist.add({ title: `x${text}y`, transportType: "bt", isLive: -1 });
    assert(await playlist.count({ query: text }) > 0, text);
    const found = await textOf(playlist.json({ query: text }));
    const titles = (JSON.parse(`[${found}]`) as { title: string }[]).map(({ title }) => title);
    assert(titles.includes(`x${text}y`), text);
  }
  await store.close();
});

test("Playlist changes a channel of more items than a statement has parameters", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  const playlist = new Playlist(store, new FakeClock());
  const id = await playlist.add({ title: "Same", transportType: "bt", isLive: -1 });
  const db = await store.open();
  const { rows } = await sql<{ name: string }>`SELECT name FROM pragma_table_info('playlist_items')`.execute(db);
  const columns = sql.raw(rows.map(({ name }) => name).filter((name) => name !== "id").join(", "));
  await sql`INSERT INTO playlist_items (${columns})
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
    SELECT ${columns} FROM n, playlist_items WHERE id = ${id}`.execute(db);
  const count = (column: "is_favorite" | "enabled" | "is_deleted") =>
    db.selectFrom("playlist_items").select((eb) => eb.fn.sum<number>(column).as("sum")).executeTakeFirstOrThrow();
  const all = { useMediaGroups: true };
  await playlist.setFlag("enabled", [id], false, all);
  await playlist.update(id, { isFavorite: true, tvgLogo: "http://l/" }, all);
  await playlist.remove([id], all);
  assertEquals([(await count("enabled")).sum, (await count("is_favorite")).sum, (await count("is_deleted")).sum], [
    0,
    40_001,
    40_001,
  ]);
  await store.close();
});

test("Playlist.json() finds titles that have all words of the query, in any order, short words and signs included", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  const playlist = new Playlist(store, new FakeClock());
  try {
    for (const title of ["Łódź TV", "Rock & Roll", "TV 100% Hits", "A_B", '"Quoted"', "C++", "Discovery Channel"]) {
      await playlist.add({ title, transportType: "bt", isLive: -1 });
    }
    const found = async (query: string) =>
      (JSON.parse(`[${await textOf(playlist.json({ query }))}]`) as { title: string }[]).map(({ title }) => title);
    const table: [string, string[]][] = [
      ["tv lodz", ["Łódź TV"]],
      ["roll  ROCK", ["Rock & Roll"]],
      ["& ro", ["Rock & Roll"]],
      ["hits 100%", ["TV 100% Hits"]],
      ["a_b", ["A_B"]],
      ['"quoted"', ['"Quoted"']],
      ["c++", ["C++"]],
      ["chan disc", ["Discovery Channel"]],
      ["tv", ["Łódź TV", "TV 100% Hits"]],
      ["tv nothing", []],
      [Array.from({ length: 50 }, () => "tv").join(" "), []],
    ];
    for (const [query, titles] of table) assertEquals(await found(query), titles, query);
  } finally {
    await store.close();
  }
});
