/** Which entries of an import are in the playlist already. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { FakeClock } from "../support/fake-clock.ts";
import { textOf } from "../support/text.ts";
import { listOf, type TestLists, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();

/** Imports a list; returns how many entries were skipped. */
async function imported({ lists }: TestLists, text: string): Promise<number> {
  const task = await lists.import(await lists.keep(new Blob([text]).stream()), "", true);
  await lists.tasks.ended(task);
  return lists.tasks.status(task).skipped;
}

const LIST = listOf(["A", "http://h/a", ' group-title="G"'], ["B", "http://h/b", ' group-title="G"']);

test("importList() adds the user's own items beside those of an external list, which may go", async () => {
  await withLists(new FakeClock(), async (all) => {
    const { lists, playlist, items } = all;
    server.behaviour.text = LIST;
    const id = await add(lists, { category: "G" });
    assertEquals(await imported(all, LIST), 0);
    assertEquals(await playlist.count(), 4);
    assertEquals(await imported(all, LIST), 2, "its own are there now");
    await lists.deleteExternal(id);
    assertEquals([...(await items()).values()].map(({ title, enabled }) => [title, enabled]), [["A", true], [
      "B",
      true,
    ]]);
  });
});

test("importList() adds what is there only as a disabled item, of the user or of a list that lost it", async () => {
  await withLists(new FakeClock(), async (all) => {
    const { lists, playlist, items } = all;
    server.behaviour.text = LIST;
    const id = await add(lists);
    server.behaviour.text = listOf(["B", "http://h/b", ' group-title="G"']);
    await lists.updateExternal(id);
    assertEquals(await imported(all, LIST), 0);
    assertEquals((await items()).get("A")?.enabled, true);
    await lists.deleteExternal(id);
    await playlist.setFlag("enabled", [(await items()).get("A")!.id], false);
    assertEquals(await imported(all, LIST), 1);
    assertEquals((await items()).get("A")?.enabled, true);
  });
});

test("importList() adds nothing from an export of the same library, whatever lists its items came from", async () => {
  await withLists(new FakeClock(), async (all) => {
    server.behaviour.text = LIST;
    await add(all.lists);
    await imported(all, listOf(["C", "http://h/c"]));
    const request = { playbackBase: "http://box/engine", output: "getstream", logoUrl: () => "" } as const;
    const encoder = new TextEncoder();
    async function* bytes() {
      for await (const part of all.lists.export(request)) yield encoder.encode(part);
    }
    assertEquals(await imported(all, await textOf(bytes())), 3);
    assertEquals(await all.playlist.count(), 3);
  });
});
