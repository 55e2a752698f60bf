/** Hostile lists: gzipped ones that unpack to hundreds of times their size, and long lines that take long to read. */
import { test } from "node:test";
import { constants, deflateRawSync, gzipSync } from "node:zlib";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { serveWeb } from "../support/web.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

/** A gzip file that unpacks to `mib` MiB of `line`, repeated; packed it has a thousandth of that. */
function bomb(mib: number, start: string, line = "\0"): Uint8Array<ArrayBuffer> {
  const piece = Buffer.from(line.repeat(Math.ceil((1 << 20) / line.length)));
  const packed = (bytes: Uint8Array) => deflateRawSync(bytes, { level: 9, finishFlush: constants.Z_SYNC_FLUSH });
  const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
  return new Uint8Array(Buffer.concat([head, packed(Buffer.from(start)), ...Array(mib).fill(packed(piece))]));
}

const NULLS = bomb(1024, '#EXTM3U x-tvg-url="');
const ENTRIES = bomb(512, "#EXTM3U\n", "#EXTINF:-1,A\nhttp://h/a\n");
const NESTED = gzipSync(NULLS);
/** 15 MB whose lines have 8 KiB of slashes. */
const SLASHES = Buffer.from(`#EXTM3U\n${`http://h/${"/".repeat(8170)}x\n`.repeat(1850)}`);
/** 15 MB of attributes and directives, as long as lines may be. */
const LONG_LINES = Buffer.from(
  `#EXTM3U\n${
    (`#EXTINF:-1 ${'a="b" '.repeat(20_000)},${"x=".repeat(40_000)}\n` +
      `#EXTVLCOPT:${"y".repeat(200_000)}\n`.repeat(4) + "http://h/a\n").repeat(15)
  }`,
);
/** 5 MB of line ends. */
const EMPTY_LINES = Buffer.from(`#EXTM3U\n${"\n\r\n".repeat(1_700_000)}`);

const PAGES: Readonly<Record<string, { readonly body: Uint8Array; readonly coding?: string }>> = {
  "/nulls.m3u": { body: NULLS },
  "/entries.m3u": { body: ENTRIES },
  "/nested.m3u": { body: NESTED },
  "/coded.m3u": { body: NULLS, coding: "gzip" },
  "/coded-twice.m3u": { body: NESTED, coding: "gzip" },
  "/slashes.m3u": { body: SLASHES },
  "/long.m3u": { body: LONG_LINES },
  "/empty.m3u": { body: EMPTY_LINES },
};

/** Runs `body` against a program, with a server of the lists above at `base`. */
async function attacked(body: (target: Target, base: string) => Promise<void>): Promise<void> {
  const web = await serveWeb((request, response) => {
    const page = PAGES[new URL(request.url!, "http://h").pathname]!;
    response.setHeader("content-type", "audio/x-mpegurl");
    if (page.coding !== undefined) response.setHeader("content-encoding", page.coding);
    response.on("error", () => {});
    response.end(page.body);
  });
  try {
    await withTarget((target) => body(target, web.base));
  } finally {
    await web.close();
  }
}

async function call(target: Target, params: Record<string, string>, body?: Uint8Array<ArrayBuffer>) {
  const query = new URLSearchParams({ token: target.token(), ...params });
  const answer = await fetch(`${target.url}/server/api?${query}`, {
    ...(body === undefined ? {} : { method: "POST", body, headers: { "content-type": "audio/x-mpegurl" } }),
  });
  return await answer.json() as { result: Record<string, unknown> | null; error: { message: string } | null };
}

/** Waits for the end of the import that `answer` began. */
async function imported(target: Target, answer: Awaited<ReturnType<typeof call>>) {
  assertEquals(answer.error, null);
  const params = { method: "get_task", task_id: String(answer.result!.task_id) };
  for (let looks = 0; looks < 600; looks++) {
    const task = (await call(target, params)).result!;
    if (!["queued", "running"].includes(String(task.state))) return task;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the import did not end");
}

/** Has a plain list imported first: the native library of the database and its code stay in memory from then on. */
async function warmedUp(target: Target): Promise<void> {
  const list = `#EXTM3U\n${"#EXTINF:-1,A\nhttp://h/a\n".repeat(10_000)}`;
  await imported(target, await call(target, { method: "playlist_import" }, new Uint8Array(Buffer.from(list))));
}

test("packed lists that unpack to a gigabyte cost nobody else anything when analysed", async () => {
  await attacked(async (target, base) => {
    await assertHarmless(target, async () => {
      for (const name of ["nulls", "nested", "coded", "coded-twice", "entries"]) {
        const url = `${base}/${name}.m3u`;
        const [guides, analysis] = await Promise.all([
          call(target, { method: "parse_m3u_playlist", url }),
          call(target, { method: "analyze_content", query: url }),
        ]);
        assert(guides.error !== null || guides.result !== null, name);
        assert(analysis.error !== null || analysis.result !== null, name);
      }
    });
    await assertHarmless(target, async () => {
      const url = (i: number) => `${base}/${["nulls", "coded", "entries"][i % 3]}.m3u?${i}`;
      await Promise.all(
        Array.from({ length: 24 }, (_, i) => call(target, { method: "parse_m3u_playlist", url: url(i) })),
      );
    });
  });
});

test("packed lists that unpack to a gigabyte cost nobody else anything when imported and fetched", async () => {
  await attacked(async (target, base) => {
    await warmedUp(target);
    await assertHarmless(target, async () => {
      const uploads = [NULLS, NESTED].map((body) => call(target, { method: "playlist_import" }, body));
      const urls = ["coded", "coded-twice"].map((name) =>
        call(target, { method: "playlist_import", url: `${base}/${name}.m3u` })
      );
      for (const answer of [...uploads, ...urls]) {
        const task = await imported(target, await answer);
        assertEquals([task.state, task.done], ["failed", 0]);
        assertMatch(String(task.error), /larger than|unpacks to more|packed/);
      }
      for (const name of ["coded-twice", "coded"]) {
        const fields = { type: "content", category: "", name, url: `${base}/${name}.m3u`, update_interval: "0" };
        const added = await call(target, { method: "external_playlist_add", ...fields, update_now: "0" });
        assertEquals(added.error, null);
        const updated = await call(target, { method: "external_playlist_update", id: String(added.result) });
        assertMatch(updated.error!.message, /larger than|unpacks to more|packed/);
      }
    });
  });
});

test("lists of 15 MB with long lines keep nobody waiting", async () => {
  await attacked(async (target, base) => {
    await warmedUp(target);
    await assertHarmless(target, async () => {
      for (const name of ["slashes", "long", "empty"]) {
        const url = `${base}/${name}.m3u`;
        await Promise.all([
          call(target, { method: "analyze_content", query: url }),
          call(target, { method: "parse_m3u_playlist", url }),
        ]);
      }
    });
    await assertHarmless(target, async () => {
      for (const body of [SLASHES, LONG_LINES, EMPTY_LINES]) {
        await imported(target, await call(target, { method: "playlist_import" }, new Uint8Array(body)));
      }
    });
  });
});

test("lists whose texts are cut inside an emoji are imported, and can be read afterwards", async () => {
  // Texts are cut at 1000 characters; wherever that is, some entry has half of its emoji before it.
  const entry = (chars: number) => {
    const text = "t".repeat(chars) + "\u{1f4fa}".repeat(20);
    return `#EXTINF:-1 tvg-id="${text}" group-title="${text}" tvg-language="${text}",${text}\nacestream://${
      chars.toString(16).padStart(40, "0")
    }\n`;
  };
  const list = Buffer.from(`#EXTM3U\n${[980, 981, 4076, 4077].map(entry).join("")}`);
  await attacked(async (target) => {
    await imported(target, await call(target, { method: "playlist_import" }, new Uint8Array(list)));
    for (const method of ["search", "playlist_get"]) {
      assertEquals((await call(target, { method })).error, null, method);
    }
    const written = await (await fetch(`${target.url}/engine/playlist.m3u`)).text();
    assertMatch(written, /\ufffd/);
  });
});
