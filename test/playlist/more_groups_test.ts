/** Items of several groups are found in each of them. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { sql } from "kysely";
import { Catalogue } from "../../src/playlist/catalogue.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { textOf } from "../support/text.ts";
import { listOf, type TestLists, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();
const LIST: [title: string, url: string, extra: string][] = [
  ["One", "http://h/1", ' group-title="News;SPORT;World"'],
  ["Two", "http://h/2", ' group-title="Sport"'],
  ["Three", "http://h/3", ' group-title="World;news;News"'],
];

async function titles({ playlist }: TestLists, category: string): Promise<string[]> {
  const items = JSON.parse(`[${await textOf(playlist.json({ category }))}]`) as { title: string }[];
  assertEquals(await playlist.count({ category }), items.length);
  return items.map(({ title }) => title);
}

async function groups({ playlist }: TestLists): Promise<[string, number][]> {
  return (await playlist.categories()).map(({ name, items }) => [name, items]);
}

/** Rows of the table of further groups. */
async function noted({ store }: TestLists): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM item_groups ORDER BY name, item_id`
    .execute(await store.read());
  return rows.map(({ name }) => name);
}

async function exported({ lists }: TestLists, category?: string): Promise<string> {
  const request = { playbackBase: "http://box/engine", output: "getstream", logoUrl: () => "", category } as const;
  const encoder = new TextEncoder();
  async function* bytes() {
    for await (const part of lists.export(request)) yield encoder.encode(part);
  }
  return await textOf(bytes());
}

async function imported({ lists }: TestLists, text: string): Promise<number> {
  const task = await lists.import(await lists.keep(new Blob([text]).stream()), "", true);
  await lists.tasks.ended(task);
  return lists.tasks.status(task).skipped;
}

test("an item of several groups is found in each, in lists, counts, searches, catalogue, exports and after an import", async () => {
  await withLists(new FakeClock(), async (all) => {
    server.behaviour.text = listOf(...LIST);
    await add(all.lists);
    assertEquals(await groups(all), [["News", 2], ["SPORT", 2], ["World", 2]]);
    assertEquals(await titles(all, "News"), ["One", "Three"]);
    assertEquals(await titles(all, "SPORT"), ["One", "Two"]);
    assertEquals(await titles(all, "World"), ["One", "Three"]);
    for (const groupByChannels of [false, true]) {
      const search = { query: "", page: 0, pageSize: 10, category: "World", groupByChannels };
      const { total, results } = await all.lists.search(search);
      assertEquals([total, results.map(({ name }) => name)], [2, ["One", "Three"]]);
    }
    const text = await exported(all);
    assertEquals([...(await exported(all, "World")).matchAll(/,(.*)\n/g)].map(([, title]) => title), ["One", "Three"]);
    assertEquals(await imported(all, text), 3, "into the same library");
    await withLists(new FakeClock(), async (other) => {
      assertEquals(await imported(other, text), 0);
      assertEquals(await groups(other), await groups(all));
      assertEquals(await titles(other, "World"), ["One", "Three"]);
      assertEquals((await exported(other)).replaceAll(' x-external="1"', ""), text.replaceAll(' x-external="1"', ""));
    });
  });
});

test("Catalogue finds broadcasts in each of their groups", async () => {
  await withLists(new FakeClock(), async (all) => {
    const id = "a".repeat(40);
    server.behaviour.text = listOf(["One", `acestream://${id}`, ' group-title="News;World"']);
    await add(all.lists);
    const catalogue = new Catalogue(all.store);
    const page = { offset: 0, limit: 10 };
    assertEquals(await catalogue.categories(page), {
      total: 2,
      entries: [{ name: "News", items: 1 }, { name: "World", items: 1 }],
    });
    assertEquals((await catalogue.items({ ...page, category: "World" })).total, 1);
  });
});

test("a category that the user gives an item replaces its groups, and stays when its list is read again", async () => {
  await withLists(new FakeClock(), async (all) => {
    server.behaviour.text = listOf(...LIST);
    const list = await add(all.lists);
    await all.playlist.update(1, { category: "Mine" });
    const expected = [["Mine", 1], ["News", 1], ["SPORT", 1], ["World", 1]] as [string, number][];
    assertEquals(await groups(all), expected);
    server.behaviour.text = server.behaviour.text.replaceAll("http://h/", "http://h/new/");
    await all.lists.updateExternal(list);
    assertEquals(await groups(all), expected);
    server.behaviour.text = listOf(["Two", "http://h/new/2", ' group-title="Sport;Cups"'], LIST[2]!);
    await all.lists.updateExternal(list);
    assertEquals(await titles(all, "Cups"), ["Two"]);
  });
});

test("further groups go with their items, and are text where the list has a category of its own", async () => {
  await withLists(new FakeClock(), async (all) => {
    server.behaviour.text = listOf(...LIST);
    const list = await add(all.lists);
    assertEquals(await noted(all), ["News", "SPORT", "World"]);
    await all.playlist.remove([1]);
    assertEquals(await titles(all, "SPORT"), ["Two"]);
    await all.playlist.clearTrash();
    assertEquals(await noted(all), ["News"]);
    await all.lists.editExternal(list, { category: "TV", name: "n", updateInterval: 0 });
    await all.lists.updateExternal(list);
    assertEquals([await noted(all), await groups(all)], [[], [["TV", 2]]]);
    await all.lists.editExternal(list, { category: "", name: "n", updateInterval: 0 });
    await all.lists.updateExternal(list);
    assertEquals(await noted(all), ["News"]);
    await all.lists.deleteExternal(list);
    assertEquals(await noted(all), []);
  });
});
