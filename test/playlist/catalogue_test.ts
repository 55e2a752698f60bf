import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";
import {
  Catalogue,
  type CatalogueFilter,
  type CatalogueItem,
  type CatalogueRequest,
} from "../../src/playlist/catalogue.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { FakeClock } from "../support/fake-clock.ts";

const PAGE = { offset: 0, limit: 100 };
const title = (text: string, more: Record<string, unknown> = {}) =>
  ({ kind: "title", test: "contains", text, negated: false, ...more }) as CatalogueFilter;

async function withCatalogue(body: (catalogue: Catalogue, playlist: Playlist) => Promise<void>) {
  const store = createStore(await loadPorts(), { kind: "memory" });
  try {
    await body(new Catalogue(store), new Playlist(store, new FakeClock()));
  } finally {
    await store.close();
  }
}

test("Catalogue.items() returns pages of enabled items that this engine plays, by list and by search", async () => {
  await withCatalogue(async (catalogue, playlist) => {
    const add = (title: string, more: Record<string, unknown> = {}) =>
      playlist.add({
        title,
        transportType: "bt",
        isLive: 0,
        infohash: title.length.toString(16).padStart(40, "a"),
        ...more,
      });
    await add("Café 100%", { category: "Films" });
    await add("The ABC News", { category: "News", isLive: 1, poster: "https://e.example/p.png" });
    const off = await add("Disabled news", { category: "Off" });
    await playlist.setFlag("enabled", [off], false);
    await add("Streamed news", { transportType: "dash", url: "https://e.example/x.mpd", infohash: "" });
    await add("Nothing yet", { infohash: "" });
    const season = await add("Season", { isMulti: true, tvgLogo: "data:image/png;base64,AA==" });
    await playlist.setFlag("is_favorite", [season], true);

    const titles = async (more: Partial<CatalogueRequest>) =>
      (await catalogue.items({ ...PAGE, ...more })).entries.map((item) => item.title);
    const [cafe, news, all] = [["Café 100%"], ["The ABC News"], ["Café 100%", "The ABC News", "Season"]];
    assertEquals(await titles({}), all);
    const { total, entries: [{ addedS, ...one }] } = await catalogue.items({ offset: 1, limit: 1 }) as {
      total: number;
      entries: [CatalogueItem];
    };
    assertEquals([total, Number.isInteger(addedS), one], [3, true, {
      ...{ id: 2, title: "The ABC News", isLive: 1, isMulti: false, picture: "https://e.example/p.png" },
      ...{ category: "News", tvgId: "", archiveDays: 0 },
    }]);
    const { entries: [multi] } = await catalogue.items({ offset: 2, limit: 1 });
    assertEquals([multi!.isMulti, multi!.picture], [true, ""]);
    const table: [Partial<CatalogueRequest>, string[]][] = [
      [{ category: "News" }, news!],
      [{ category: "Off" }, []],
      [{ isFavorite: true }, ["Season"]],
      [{ filter: title("CAFE") }, cafe!],
      [{ filter: title("%") }, cafe!],
      [{ filter: title('"x') }, []],
      [{ filter: title("caf", { negated: true }) }, ["The ABC News", "Season"]],
      [{ filter: title("season", { test: "is" }) }, ["Season"]],
      [{ filter: title("seaso", { test: "is" }) }, []],
      [{ filter: { kind: "live", value: true } }, news!],
      [{ filter: { kind: "any", of: [title("abc"), title("ca")] } }, [...cafe!, ...news!]],
      [{ filter: { kind: "all", of: [title("abc"), { kind: "live", value: false }] } }, []],
      [{ filter: { kind: "constant", value: false } }, []],
      [{ filter: { kind: "sort", of: "channel" } }, news!],
      [{ filter: { kind: "sort", of: "film" } }, cafe!],
      [{ filter: { kind: "sort", of: "series" } }, ["Season"]],
    ];
    for (const [request, expected] of table) assertEquals(await titles(request), expected, JSON.stringify(request));
    assertEquals(await catalogue.item(off), null);
    assertEquals((await catalogue.item(season))?.title, "Season");
    assertEquals(await catalogue.categories(PAGE), {
      total: 2,
      entries: [{ name: "Films", items: 1 }, { name: "News", items: 1 }],
    });
    assertEquals((await catalogue.categories({ ...PAGE, filter: { kind: "sort", of: "channel" } })).entries, [
      { name: "News", items: 1 },
    ]);
    assertEquals(await catalogue.categories({ offset: 1, limit: 1 }), {
      total: 2,
      entries: [{ name: "News", items: 1 }],
    });
  });
});

test("Catalogue.items() reads page by page, in any order, and sees at once what changed", async () => {
  await withCatalogue(async (catalogue, playlist) => {
    const ids: number[] = [];
    const add = async (n: number) =>
      void ids.push(
        await playlist.add({ title: `Film ${n}`, transportType: "bt", isLive: 0, infohash: "a".repeat(40) }),
      );
    for (let n = 0; n < 50; n++) await add(n);
    const at = async (offset: number, limit: number) =>
      (await catalogue.items({ offset, limit })).entries.map(({ id }) => id);
    for (
      const [offset, limit] of [[0, 7], [7, 7], [14, 7], [0, 3], [40, 20], [40, 5], [45, 5], [50, 5], [2, 2], [9, 0], [
        9,
        1,
      ]]
    ) {
      assertEquals(await at(offset!, limit!), ids.slice(offset!, offset! + limit!), `${offset} ${limit}`);
    }
    await add(50);
    assertEquals((await catalogue.items({ offset: 50, limit: 5 })).total, 51);
    assertEquals(await at(50, 5), [ids[50]]);
    const filter = title("film 4");
    assertEquals((await catalogue.items({ offset: 0, limit: 1, filter })).total, 11);
  });
});

test("Catalogue.version() changes when items are added, removed or changed", async () => {
  await withCatalogue(async (catalogue, playlist) => {
    const seen = [await catalogue.version()];
    const note = async () => {
      const version = await catalogue.version();
      assert(Number.isInteger(version) && version >= 0 && version < 2 ** 32 && !seen.includes(version), String(seen));
      seen.push(version);
    };
    const id = await playlist.add({ title: "One", transportType: "bt", isLive: 0, infohash: "a".repeat(40) });
    await note();
    await playlist.add({ title: "Two", transportType: "bt", isLive: 0, infohash: "b".repeat(40) });
    await note();
    await playlist.update(id, { title: "Three" });
    await note();
    await playlist.remove([id]);
    await note();
    assertEquals(await catalogue.version(), seen.at(-1));
  });
});
