/** Ids that are none, and what they do to channels. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { SharedIds } from "../../src/playlist/shared-ids.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { listOf, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();

test("SharedIds.mediaGroupOf() goes by the name where the id is on entries of many names", () => {
  const groups = (entries: [title: string, tvg_id: string][]) => {
    const ids = new SharedIds();
    for (const [title, tvg_id] of entries) ids.add({ title, tvg_id });
    return entries.map(([title, tvg_id]) => ids.mediaGroupOf({ title, tvg_id }));
  };
  assertEquals(groups([["CNN", "cnn"], ["CNN HD", "CNN"], ["CNN backup", "cnn"], ["Si-en-en", "cnn"]]), [
    ...Array.from({ length: 4 }, () => "id:cnn"),
  ]);
  assertEquals(
    groups([["PPV 1", "ppv"], ["PPV 2", "ppv"], ["PPV 3", "ppv"], ["PPV 4", "PPV"], ["Other", "other"]]),
    ["name:ppv1", "name:ppv2", "name:ppv3", "name:ppv4", "id:other"],
  );
});

/** Four channels with one id, and three with a placeholder. */
const LIST = listOf(
  ...["One", "Two", "Three", "Four"].map((name) =>
    [name, `http://h/${name}`, ' tvg-id="all"'] satisfies [string, string, string]
  ),
  ...["News", "Sport", "Kids"].map((name) =>
    [name, `http://h/${name}`, ' tvg-id="N/A"'] satisfies [string, string, string]
  ),
  ["Own", "http://h/own", ' tvg-id="own.tv"'],
);

test("a channel is not one with others because its list writes one id on all of them", async () => {
  await withLists(new FakeClock(), async ({ lists, playlist, store, items }) => {
    const groups = async () => {
      const db = await store.open();
      const rows = await db.selectFrom("playlist_items").select("media_group").orderBy("id").execute();
      return rows.map(({ media_group }) => media_group);
    };
    const expected = ["one", "two", "three", "four", "news", "sport", "kids"].map((name) => `name:${name}`);
    expected.push("id:own.tv");
    const kept = await lists.keep(new Blob([LIST]).stream());
    await lists.tasks.ended(await lists.import(kept, "", true));
    assertEquals(await groups(), expected, "imported");
    const at = async (title: string) => (await items()).get(title)!.id;
    await playlist.update(await at("One"), { title: "First" });
    assertEquals((await groups())[0], "name:first");
    await playlist.remove([await at("News")], { useMediaGroups: true });
    assertEquals([...(await items()).keys()], ["First", "Two", "Three", "Four", "Sport", "Kids", "Own"]);
    await playlist.clear();
    await playlist.clearTrash();

    server.behaviour.text = LIST;
    const id = await add(lists);
    assertEquals(await groups(), expected, "fetched");
    await playlist.update(await at("One"), { title: "First" });
    server.behaviour.text = LIST.replace("http://h/One", "http://h/1");
    await lists.updateExternal(id);
    assertEquals(await groups(), ["name:first", ...expected.slice(1)], "fetched again");
  });
});
