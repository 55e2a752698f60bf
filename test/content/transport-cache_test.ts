import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { MillraceError } from "../../src/errors.ts";
import type { FilePort } from "../../src/ports.ts";
import { createLiveTransportFile, fromPublic } from "../../src/metainfo/live.ts";
import { createTransportCache } from "../../src/content/transport-cache.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { ports, withDirectory } from "../contract/support.ts";

test("TransportCache.keep(): every content id that it answers resolves, in memory and on disk", async () => {
  const bytes = await readFile(new URL("../fixtures/single.torrent", import.meta.url));
  const metainfo = await parseTransportFile(new Uint8Array(bytes));
  // The same torrent by way of a magnet without its trackers has another transport record.
  const bare = { ...metainfo, trackers: [], name: "other" };
  await withDirectory(async (directory) => {
    for (const place of [null, directory]) {
      const cache = createTransportCache(ports.files, place, ports.log);
      const ids = [await cache.keep(bare), await cache.keep(metainfo), await cache.keep(metainfo)];
      assertEquals(new Set(ids).size, 2);
      for (const id of ids) assertEquals((await cache.byContentId(id))?.infohashHex, metainfo.infohashHex);
      assertEquals(await cache.byContentId("0".repeat(40)), null);
      assertEquals(await cache.byInfohash("0".repeat(40)), null);
    }
  });
});

test("TransportCache.keep() takes a file with trackers in place of one without, and never the other way", async () => {
  const bytes = await readFile(new URL("../fixtures/single.torrent", import.meta.url));
  const { trackers: _, ...rest } = await parseTransportFile(new Uint8Array(bytes));
  const [bare, told, other] = [[], [["http://a.example/announce"]], [["http://b.example/announce"]]].map((
    trackers,
  ) => ({
    ...rest,
    trackers,
  }));
  await withDirectory(async (directory) => {
    for (const place of [null, directory]) {
      const cache = createTransportCache(ports.files, place, ports.log);
      const kept = async () => (await cache.byInfohash(rest.infohashHex))?.trackers;
      for (
        const [file, expected] of [[bare!, []], [told!, told!.trackers], [other!, told!.trackers], [
          bare!,
          told!.trackers,
        ]] as const
      ) {
        await cache.keep(file);
        assertEquals(await kept(), expected);
      }
      if (place === null) continue;
      const again = createTransportCache(ports.files, place, ports.log);
      assertEquals((await again.byInfohash(rest.infohashHex))?.trackers, told!.trackers);
    }
  });
});

test("TransportCache marks what a public server gave, until the user gives the same, also after a restart", async () => {
  const bytes = await readFile(new URL("../fixtures/single.torrent", import.meta.url));
  const metainfo = await parseTransportFile(new Uint8Array(bytes));
  await withDirectory(async (directory) => {
    for (const place of [null, directory]) {
      const open = () => createTransportCache(ports.files, place, ports.log);
      let cache = open();
      const isMarked = async (id: string) => [
        (await cache.byInfohash(metainfo.infohashHex))?.isFromPublic,
        (await cache.byContentId(id))?.isFromPublic,
      ];
      const id = await cache.keep(fromPublic(metainfo));
      assertEquals(await isMarked(id), [true, true]);
      await cache.keep((await cache.byInfohash(metainfo.infohashHex))!);
      if (place !== null) cache = open();
      assertEquals(await isMarked(id), [true, true]);
      await cache.keep(metainfo);
      assertEquals(await isMarked(id), [undefined, undefined]);
    }
  });
});

test("TransportCache.byInfohash() decodes a file once for calls that come together or soon after", async () => {
  const bytes = await readFile(new URL("../fixtures/single.torrent", import.meta.url));
  const metainfo = await parseTransportFile(new Uint8Array(bytes));
  await withDirectory(async (directory) => {
    let reads = 0;
    const counting: FilePort = {
      ...ports.files,
      readFile: (path, options) => (reads++, ports.files.readFile(path, options)),
    };
    const cache = createTransportCache(counting, directory, ports.log);
    assertEquals(await cache.byInfohash(metainfo.infohashHex), null);
    await cache.keep(metainfo);
    reads = 0;
    const [first, second] = await Promise.all([1, 2].map(() => cache.byInfohash(metainfo.infohashHex)));
    assertEquals([first, second, await cache.byInfohash(metainfo.infohashHex)], [metainfo, metainfo, metainfo]);
    assertEquals(reads, 1);
  });
});

test("TransportCache.byInfohash() keeps no more than 8 MiB of files decoded", async () => {
  await withDirectory(async (directory) => {
    const opened: string[] = [];
    const counting: FilePort = {
      ...ports.files,
      readFile: (path, options) => (opened.push(path), ports.files.readFile(path, options)),
    };
    const cache = createTransportCache(counting, directory, ports.log);
    const large = await Promise.all([1, 2, 3].map((n) =>
      parseTransportFile(encodeBencode({
        info: {
          length: 40,
          name: `${n}`,
          "piece length": 16384,
          pieces: new Uint8Array(20),
          pad: new Uint8Array(3 << 20),
        },
      }))
    ));
    for (const metainfo of large) await cache.keep(metainfo);
    const read = async (n: number) => {
      opened.length = 0;
      await cache.byInfohash(large[n]!.infohashHex);
      return opened.length;
    };
    assertEquals([await read(0), await read(1), await read(0), await read(2)], [1, 1, 0, 1]);
    // The second was used longest ago.
    assertEquals([await read(0), await read(2), await read(1)], [0, 0, 1]);
  });
});

/** A file system in memory where every transport file is of `sizeBytes`. */
function largeFiles(sizeBytes: number): FilePort & { readonly names: Set<string> } {
  const names = new Set<string>();
  let now = 0;
  const times = new Map<string, number>();
  const missing = () => Promise.reject(new MillraceError("not_found", "no such file"));
  return {
    names,
    open: missing,
    readFile: missing,
    rename: missing,
    removeEmptyDirectory: missing,
    writeFile: (path) => Promise.resolve(void (names.add(path), times.set(path, now++))),
    info: (path) =>
      names.has(path)
        ? Promise.resolve({
          sizeBytes: path.endsWith(".torrent") ? sizeBytes : 40,
          modifiedMs: times.get(path)!,
          isDirectory: false,
        })
        : missing(),
    list: (directory) => Promise.resolve([...names].map((path) => path.slice(directory.length + 1))),
    makeDirectory: () => Promise.resolve(),
    remove: (path) => Promise.resolve(void names.delete(path)),
  };
}

test("TransportCache.keep() lets the oldest go when all together are too large", async () => {
  const files = largeFiles(200 * 1024 * 1024);
  // What earlier processes left.
  for (const name of ["a", "b", "c", "d"]) await files.writeFile(`/d/${name}.torrent`, new Uint8Array());
  const { metainfo } = await createLiveTransportFile({ name: "e", publicKey: new Uint8Array(32), bytesPerS: 1000 });
  const cache = createTransportCache(files, "/d", ports.log);
  const id = await cache.keep(metainfo);
  assertEquals([...files.names].sort(), ["/d/d.torrent", `/d/${id}.id`, `/d/${metainfo.infohashHex}.torrent`].sort());
});

test("TransportCache.close() waits for running writes, and stores nothing after that", async () => {
  const files = largeFiles(1);
  let write = () => {};
  const gate = new Promise<void>((resolve) => write = resolve);
  let started = () => {};
  const writing = new Promise<void>((resolve) => started = resolve);
  const slow: FilePort = { ...files, makeDirectory: () => (started(), gate) };
  const cache = createTransportCache(slow, "/d", ports.log);
  const make = async (name: string) =>
    (await createLiveTransportFile({ name, publicKey: new Uint8Array(32), bytesPerS: 1000 })).metainfo;
  const [early, late] = [await make("early"), await make("late")];
  void cache.keep(early);
  await writing;
  let closed = false;
  const closing = cache.close().then(() => closed = true);
  await cache.keep(late);
  assertEquals([closed, files.names.size], [false, 0]);
  write();
  await closing;
  assertEquals([...files.names].filter((name) => name.endsWith(".torrent")), [`/d/${early.infohashHex}.torrent`]);
});
