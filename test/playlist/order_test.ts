/** The order of a list is that of its items. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { Channels } from "../../src/playlist/channel.ts";
import { sortKeys } from "../../src/playlist/external/order.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { textOf } from "../support/text.ts";
import { listOf, type TestLists, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();

/** A list of channels that are called by one letter. */
const channels = (letters: string, numbers: Record<string, string> = {}) =>
  listOf(...[...letters].map((letter) => {
    const number = numbers[letter];
    const extra = ` tvg-id="${letter}.tv"${number === undefined ? "" : ` tvg-chno="${number}"`}`;
    return [letter, `acestream://${letter.charCodeAt(0).toString(16).padStart(40, "0")}`, extra] as [
      string,
      string,
      string,
    ];
  }));

async function listed({ playlist }: TestLists): Promise<string> {
  const items = JSON.parse(`[${await textOf(playlist.json())}]`) as { title: string; enabled: boolean }[];
  return items.filter(({ enabled }) => enabled).map(({ title }) => title).join("");
}

async function exported({ lists }: TestLists): Promise<string> {
  const request = { playbackBase: "http://box/engine", output: "getstream", logoUrl: () => "" } as const;
  let text = "";
  for await (const part of lists.export(request)) text += part;
  return [...text.matchAll(/^#EXTINF.*,(.*)$/gm)].map(([, title]) => title).join("");
}

test("items stand in the order of their list, in pages, searches and exports, whatever comes, goes and moves", async () => {
  await withLists(new FakeClock(), async (all) => {
    const { lists, playlist } = all;
    server.behaviour.text = channels("ABC");
    const id = await add(lists);
    await playlist.add({ title: "own", transportType: "bt", infohash: "f".repeat(40), isLive: 1 });
    const table: [list: string, own: string | null][] = [
      ["CNAB", "CNABown"],
      ["CNABZ", "CNABownZ"],
      ["ZBANCXY", null],
      ["AXYC", null],
      ["ABNXYC", null],
    ];
    for (const [list, whole] of table) {
      server.behaviour.text = channels(list);
      await lists.updateExternal(id);
      const now = await listed(all);
      assertEquals(now.replace("own", ""), list, "without the user's own item");
      if (whole !== null) assertEquals(now, whole);
      assertEquals(await exported(all), now);
      const { results } = await lists.search({ query: "", page: 0, pageSize: 50, groupByChannels: true });
      assertEquals(results.map(({ name }) => name).join(""), now);
    }
  });
});

test("Channels.lineup() goes by number, an export by the order of the list", async () => {
  await withLists(new FakeClock(), async (all) => {
    server.behaviour.text = channels("ABCD", { A: "10.2", B: "9", C: "10.10", D: "10" });
    await add(all.lists, { type: "broadcast" });
    const lineup = await new Channels(all.store).lineup();
    assertEquals(lineup.map(({ title }) => title).join(""), "BDAC");
    assertEquals(await exported(all), "ABCD");
  });
});

/** Keys after `sortKeys` said which change; those of new items are larger than all others, in their order. */
async function applied(before: readonly number[]): Promise<{ keys: number[]; changed: number }> {
  const after = await sortKeys(Float64Array.from(before));
  let next = Math.max(0, ...before.filter((key) => !Number.isNaN(key))) + 1;
  let changed = 0;
  const keys = before.map((key, at) => {
    if (!Number.isNaN(after[at]!)) {
      changed++;
      return after[at]!;
    }
    return Number.isNaN(key) ? next++ : key;
  });
  return { keys, changed };
}

function assertAscending(keys: readonly number[]): void {
  for (let at = 1; at < keys.length; at++) assert(keys[at - 1]! < keys[at]!, `${keys[at - 1]} ${keys[at]}`);
}

test("sortKeys() puts any list in order, and changes no more entries than must be", async () => {
  const table: [before: number[], changed: number][] = [
    [[], 0],
    [[NaN, NaN], 0],
    [[1, 2, 3], 0],
    [[1, 2, 3, NaN, NaN], 0],
    [[NaN, 1, 2, NaN, NaN, 3, NaN], 3],
    [[3, 1, 2], 1],
    [[1, 2, 9, 3, 4], 1],
    [[3, 2, 1], 2],
    [[2, NaN, 1, NaN], 2],
    [[100_000, NaN, 100_000.25, 7], 2],
  ];
  for (const [before, expected] of table) {
    const { keys, changed } = await applied(before);
    assertAscending(keys);
    assertEquals(changed, expected, String(before));
  }
});

test("sortKeys() finds room at the same place again and again", async () => {
  for (const place of [0, 1, 2]) {
    let keys = [1000, 1001, 1002];
    let renewed = 0;
    for (let round = 0; round < 200; round++) {
      const before = [...keys.slice(0, place), NaN, ...keys.slice(place)];
      const { keys: now, changed } = await applied(before);
      assertAscending(now);
      if (changed > 1) renewed++;
      keys = now;
    }
    assert(renewed < 20, `${renewed} times all keys were made again`);
  }
});
