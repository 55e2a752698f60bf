import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { MillraceError } from "../../src/errors.ts";
import { exportM3u } from "../../src/playlist/export.ts";
import { importList } from "../../src/playlist/import.ts";
import { Playlist } from "../../src/playlist/items.ts";
import type { TaskError, TaskProgress } from "../../src/playlist/tasks.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { seededBelow } from "../support/random.ts";
import { textOf } from "../support/text.ts";
import { cpuMs } from "../support/cpu-time.ts";

const clock = new FakeClock();

class Progress implements TaskProgress {
  done = 0;
  total = -1;
  skipped = 0;
  readonly errors: TaskError[] = [];
  readonly control = new AbortController();
  get signal() {
    return this.control.signal;
  }
  report(error: TaskError) {
    this.errors.push(error);
  }
}

async function withStore(body: (store: Store) => Promise<void>): Promise<void> {
  const store = createStore(await loadPorts(), { kind: "memory" });
  try {
    await body(store);
  } finally {
    await store.close();
  }
}

const bytesOf = (text: string) => new TextEncoder().encode(text);
const streamOf = (bytes: Uint8Array) => () => new Blob([new Uint8Array(bytes)]).stream();

async function importText(
  store: Store,
  text: string | Uint8Array,
  owner = "",
  allowPrivate = true,
): Promise<Progress> {
  const progress = new Progress();
  const bytes = typeof text === "string" ? bytesOf(text) : text;
  await importList(store, clock, { open: streamOf(bytes), owner, allowPrivate }, progress);
  return progress;
}

async function exported(store: Store): Promise<string> {
  let text = "";
  const base = "http://box:6878";
  const logoUrl = (id: number) => `${base}/logo/${id}`;
  for await (const part of exportM3u(store, { playbackBase: `${base}/engine`, output: "getstream", logoUrl })) {
    text += part;
  }
  return text;
}

/** All items without what differs from import to import. */
async function items(store: Store): Promise<Record<string, unknown>[]> {
  const text = await textOf(new Playlist(store, clock).json());
  return (JSON.parse(`[${text}]`) as Record<string, unknown>[]).map(({ id: _, ...item }) => item);
}

const ID = "0123456789abcdef0123456789abcdef01234567";

test("importList() keeps all that real lists carry, and reports bad lines by number", async () => {
  await withStore(async (store) => {
    const list = `\uFEFF#EXTM3U url-tvg="http://g/a.xml,http://g/b.xml" catchup="shift" catchup-days="3"\r
#EXTINF:-1 tvg-id="One.tv" tvg-name="ONE" tvg-logo="http://l/1.png" tvg-language="French" tvg-country="FR" group-title="News",Télé Un HD\r
#EXTVLCOPT:http-user-agent=Box\r
http://h/one.m3u8\r
#EXTINF:120,Film\r
#EXTGRP:Films\r
http://h/film.mp4\r
this is no address\r
#EXTINF:-1 catchup="flussonic",Torrent\r
${ID}\r
#EXTINF:-1,nothing follows\r
`;
    const progress = await importText(store, list, "ann");
    assertEquals([progress.done, progress.total, progress.skipped], [3, 3, 0]);
    assertEquals(progress.errors.map(({ line }) => line), [8, 11]);
    const [one, film, torrent] = await items(store);
    assertEquals(
      [one!["title"], one!["tvg_id"], one!["tvg_name"], one!["tvg_logo"], one!["languages"], one!["countries"]],
      ["Télé Un HD", "One.tv", "ONE", "http://l/1.png", "French", "FR"],
    );
    assertEquals([one!["category"], one!["transport_type"], one!["url"]], ["News", "hls", "http://h/one.m3u8"]);
    assertEquals([film!["category"], film!["is_live"], film!["content_type"]], ["Films", 0, "vod"]);
    assertEquals([torrent!["content_id"], torrent!["url"], torrent!["transport_type"]], [ID, null, "bt"]);
    const text = await exported(store);
    assertMatch(text, /^#EXTM3U url-tvg="http:\/\/g\/a.xml,http:\/\/g\/b.xml"\n/);
    assert(
      text.includes(
        'catchup="shift" catchup-days="3" tvg-chno="1",Télé Un HD\n#EXTVLCOPT:http-user-agent=Box\nhttp://h/one.m3u8',
      ),
    );
    assert(text.includes("#EXTGRP:Films\nhttp://h/film.mp4"), text);
    assert(text.includes('catchup="flussonic"'), text);
    assert(text.includes(`http://box:6878/engine/getstream?content_id=${ID}`), text);
    const { rows } = { rows: await (await store.open()).selectFrom("playlist_items").select("owner").execute() };
    assertEquals(rows.map(({ owner }) => owner), ["ann", "ann", "ann"]);
  });
});

test("importList() reads gzip and latin-1", async () => {
  await withStore(async (store) => {
    const latin = Uint8Array.from("#EXTM3U\n#EXTINF:-1,Caf\u00e9\nhttp://h/1\n", (c) => c.charCodeAt(0));
    await importText(store, gzipSync(latin));
    assertEquals((await items(store)).map((item) => item["title"]), ["Café"]);
  });
});

test("importList() refuses anything but a list before it adds items, and stops when cancelled", async () => {
  await withStore(async (store) => {
    for (const text of ["<html><body>http://h/1", "#EXTM3U\nhttp://h/1\n#EXT-X-TARGETDURATION:5\n"]) {
      await assertRejects(() => importText(store, text), MillraceError);
    }
    assertEquals(await items(store), []);
    const progress = new Progress();
    const many = bytesOf(Array.from({ length: 5000 }, (_, i) => `http://h/${i}\n`).join(""));
    let opened = 0;
    const open = () => {
      if (++opened === 2) queueMicrotask(() => progress.control.abort());
      return streamOf(many)();
    };
    await assertRejects(
      () => importList(store, clock, { open, owner: "", allowPrivate: true }, progress),
      MillraceError,
    );
    assert((await items(store)).length < 5000);
    assertEquals((await items(store)).length, progress.done);
  });
});

test("Playlist.icon() finds imported channels by name, tvg-id and hash", async () => {
  await withStore(async (store) => {
    await importText(
      store,
      '#EXTM3U\n#EXTINF:-1 tvg-id="t5.fr" tvg-logo="http://l/5",Télé 5 HD\nhttp://h/5\n' +
        '#EXTINF:-1 tvg-logo="http://l/6",Six\nhttp://h/6\n#EXTINF:-1,Télé 7\nhttp://h/7\n',
    );
    const playlist = new Playlist(store, clock);
    const { hash } = await playlist.get(1);
    const table: [Parameters<Playlist["icon"]>[0], string | null][] = [
      [{ id: 1 }, "http://l/5"],
      [{ hash }, "http://l/5"],
      [{ commonName: "tele 5" }, "http://l/5"],
      [{ commonName: "T5.fr" }, "http://l/5"],
      [{ commonName: "SIX 4K" }, "http://l/6"],
      [{ commonName: "tele" }, null],
      [{ commonName: "tele 7" }, null],
      [{ commonName: '"' }, null],
      [{ id: 3 }, null],
      [{}, null],
    ];
    for (const [request, url] of table) {
      assertEquals((await playlist.icon(request))?.url ?? null, url, JSON.stringify(request));
    }
  });
});

test("importing the same list again changes nothing, even if items were renamed since", async () => {
  await withStore(async (store) => {
    const list = '#EXTM3U\n#EXTINF:-1 group-title="A",One\nhttp://h/1\n#EXTINF:-1 group-title="B",One\nhttp://h/1\n' +
      '#EXTINF:-1,Two\nhttp://h/1\n#EXTINF:-1 group-title="A",One\nhttp://h/1\n';
    assertEquals((await importText(store, list)).skipped, 1);
    const before = await items(store);
    assertEquals(before.length, 3);
    assertEquals((await importText(store, list)).skipped, 4);
    assertEquals((await importText(store, await exported(store))).skipped, 3);
    assertEquals(await items(store), before);
    await new Playlist(store, clock).update(1, { title: "Renamed" });
    assertEquals((await importText(store, list)).skipped, 4);
    assertEquals((await importText(store, await exported(store))).skipped, 3);
    assertEquals((await items(store)).length, 3);
  });
});

test("import, export, import: nothing changes, for lists of any content", async () => {
  const random = seededBelow(11);
  const pick = <T>(values: readonly T[]) => values[random(values.length)]!;
  const words = [
    "One",
    "Télé",
    "ПЕРВЫЙ",
    "日本",
    'a "b"',
    "x,y",
    "it's",
    "HD",
    "100%",
    "&amp;",
    "a=b",
    "\"q\" 's'",
    "#1",
    "|",
  ];
  const text = () => Array.from({ length: random(4) }, () => pick(words)).join(" ");
  const names = [
    "tvg-id",
    "tvg-name",
    "tvg-logo",
    "group-title",
    "tvg-language",
    "tvg-country",
    "catchup",
    "x-own",
    "logo",
  ];
  const addresses = [
    () => `http://h/${random(9)}.m3u8?a=${random(9)}&b=${encodeURIComponent(text())}`,
    () => `http://h/${random(9)}.ts|User-Agent=X&Referer=y`,
    () => ID.replace(/^./, String(random(9))),
    () => `magnet:?xt=urn:btih:${ID}&dn=${encodeURIComponent(text())}`,
    () => `http://other:6878/engine/getstream?id=${ID}&x=1`,
    () => `any:?infohash=${ID}`,
    () => `https://h/${random(9)}.torrent`,
    () => `udp://@239.0.0.${random(9)}:1234`,
  ];
  for (let round = 0; round < 25; round++) {
    let list = `#EXTM3U${random(2) ? ` url-tvg="http://g/${random(5)}"` : ""}${
      random(2) ? ' catchup="default"' : ""
    }\n`;
    for (let i = random(30); i > 0; i--) {
      if (random(5) > 0) {
        const attributes = Array.from({ length: random(5) }, () => {
          const name = pick(names);
          return ` ${name}="${name.includes("logo") ? "http://l/x.png" : text().replaceAll('"', "")}"`;
        });
        list += `#EXTINF:${pick(["-1", "0", "90", "12.5"])}${attributes.join("")},${text()}\n`;
      }
      if (random(3) === 0) list += `#EXTGRP:${text()}\n`;
      if (random(4) === 0) list += `#EXTVLCOPT:${text()}\n#KODIPROP:${text()}\n`;
      list += `${pick(addresses)()}\n`;
    }
    await withStore(async (first) => {
      await importText(first, list);
      const out = await exported(first);
      assertEquals((await importText(first, out)).skipped, (await items(first)).length, list);
      await withStore(async (second) => {
        await importText(second, out);
        assertEquals(await items(second), await items(first), list);
        assertEquals(await exported(second), out, list);
      });
    });
  }
});

test("importList() takes no longer for an entry when there are many", async () => {
  await withStore(async (store) => {
    const took: number[] = [];
    for (let part = 0; part < 4; part++) {
      let list = "#EXTM3U\n";
      for (let i = 0; i < 4000; i++) {
        list += `#EXTINF:-1 group-title="g${i % 40}",Channel ${part} ${i}\nhttp://h/${part}/${i}\n`;
      }
      const begun = cpuMs();
      assertEquals((await importText(store, list)).done, 4000);
      took.push(cpuMs() - begun);
    }
    assertEquals(await new Playlist(store, clock).count(), 16_000);
    // Looking at all items for each batch would make it many times as long.
    assert(took[3]! < 6 * Math.max(took[0]!, 200), took.join());
  });
});

test("exportM3u() signs no address of a list that a caller elsewhere added or sent", async () => {
  await withStore(async (store) => {
    const db = await store.open();
    const list = { type: "content", category: "", url: "http://h/", login: "", password: "", update_interval: 0 };
    const times = { updated_at: 0, last_update: 0, next_update: 0, failures: 0, last_error: "", etag: "" };
    for (const name of ["ours", "theirs"]) {
      const { id } = await db.insertInto("external_playlists").values({
        ...list,
        ...times,
        name,
        last_modified: "",
        allow_private: Number(name === "ours"),
      }).returning("id").executeTakeFirstOrThrow();
      await importText(store, `http://192.168.1.1/${name}.torrent\n`, "", false);
      await db.updateTable("playlist_items").set({ external_playlist_id: id }).where("external_playlist_id", "=", -1)
        .execute();
    }
    await importText(store, "http://192.168.1.1/own.torrent\n");
    await importText(store, "http://192.168.1.1/sent.torrent\n", "", false);
    let text = "";
    const request = { playbackBase: "http://box/engine", output: "getstream", logoUrl: () => "" } as const;
    const keyOf = (selector: string, value: string) => Promise.resolve(`${selector}-${value.split("/").pop()}`);
    for await (const part of exportM3u(store, { ...request, keyOf })) text += part;
    assertEquals([...text.matchAll(/2F(\w+)\.torrent(?:&key=(\S+))?$/gm)].map(([, name, key]) => [name, key ?? null]), [
      ["ours", "url-ours.torrent"],
      ["theirs", null],
      ["own", "url-own.torrent"],
      ["sent", null],
    ]);
  });
});
