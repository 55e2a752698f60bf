import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";
import { type ListRequest, Playlist } from "../../src/playlist/items.ts";
import { FakeClock } from "../support/fake-clock.ts";

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
    let text = "";
    for await (const part of playlist.json(request)) text += part;
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
  const first = JSON.parse(`[${(await reading.next()).value}]`) as { id: number }[];
  await playlist.remove([ids[0]!, ids[600]!]);
  let rest = "";
  for await (const part of reading) rest += part;
  const seen = [...first, ...JSON.parse(`[${rest.slice(1)}]`) as { id: number }[]].map(({ id }) => id);
  assertEquals(seen, ids.filter((id) => id !== ids[600]));
  assertEquals(await read({ trash: true }), [ids[0]!, ids[600]!]);
  await store.close();
});
