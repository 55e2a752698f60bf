/** Numbers and radio stations in lists, and the numbers of exports. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { FakeClock } from "../support/fake-clock.ts";
import { textOf } from "../support/text.ts";
import { listOf, type TestLists, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();

async function exportedNumbers({ lists }: TestLists): Promise<[string, string][]> {
  const request = { playbackBase: "http://box/engine", output: "getstream", logoUrl: () => "" } as const;
  const encoder = new TextEncoder();
  async function* bytes() {
    for await (const part of lists.export(request)) yield encoder.encode(part);
  }
  return [...(await textOf(bytes())).matchAll(/tvg-chno="([^"]*)".*,(.*)/g)].map((
    [, number, title],
  ) => [title!, number!]);
}

test("an export gives each channel one number, as the tuner does, whatever its lists wrote", async () => {
  await withLists(new FakeClock(), async (all) => {
    server.behaviour.text = listOf(
      ["A", "http://h/a", ' tvg-chno="7"'],
      ["B", "http://h/b", ' tvg-chno="7"'],
      ["C", "http://h/c", ' tvg-chno=""'],
      ["D", "http://h/d", ' ch-number="12"'],
      ["E", "http://h/e", ' tvg-chno="" channel-number="13"'],
      ["F", "http://h/f", ' tvg-chno="HD 1"'],
    );
    const id = await add(all.lists, { type: "broadcast" });
    const expected: [string, string][] = [["A", "7"], ["B", "2"], ["C", "3"], ["D", "12"], ["E", "13"], ["F", "6"]];
    assertEquals(await exportedNumbers(all), expected);
    const whole = server.behaviour.text;
    server.behaviour.text = whole.replace(/#EXTINF.*,A\n.*\n/, "");
    await all.lists.updateExternal(id);
    assertEquals(await exportedNumbers(all), expected.slice(1), "A vanished");
    server.behaviour.text = whole;
    await all.lists.updateExternal(id);
    assertEquals(await exportedNumbers(all), expected, "A is back");
  });
});

test("radio stations are live where their list says so, or is one of broadcasts", async () => {
  await withLists(new FakeClock(), async ({ lists, items }) => {
    server.behaviour.text = listOf(
      ["Marked", "http://h/rock", ' radio="true"'],
      ["Named", "http://h/live.mp3"],
      ["Station", "http://h/pid/1/stream.mp4"],
      ["Film", "http://h/film.mp4"],
    );
    const live = async () => [...(await items()).values()].map((item) => item.is_live);
    const id = await add(lists, { type: "broadcast" });
    assertEquals(await live(), [1, 1, 1, 0]);
    await lists.deleteExternal(id);
    await add(lists);
    assertEquals(await live(), [1, -1, -1, 0]);
  });
});
