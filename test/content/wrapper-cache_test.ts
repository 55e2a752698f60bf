import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import { createWrapperCache } from "../../src/content/wrapper-cache.ts";
import { createWrapper } from "../../src/metainfo/wrapper.ts";
import { ports, withDirectory } from "../contract/support.ts";

const wrapperOf = (name: string) =>
  createWrapper({ url: `http://h/${name}`, name, isLive: 0, mime: "video/mp4", sizeBytes: 1 });

test("WrapperCache.keep() evicts only the entries of the same caller", async () => {
  const others = await Promise.all(Array.from({ length: 510 }, (_, i) => wrapperOf(`${i}`)));
  await withDirectory(async (directory) => {
    for (const place of [null, join(directory, "wrappers")]) {
      const cache = createWrapperCache(ports.files, place, ports.log);
      const mine = await wrapperOf("mine");
      const id = await cache.keep(mine, true);
      const theirs = await wrapperOf("theirs");
      const theirId = await cache.keep(theirs, false);
      assertEquals((await cache.byContentId(theirId))?.url, theirs.url);
      for (const wrapper of others) await cache.keep(wrapper, false);
      assertEquals((await cache.byContentId(id))?.url, mine.url);
      assertEquals((await cache.byInfohash(mine.infohashHex))?.url, mine.url);
      assertEquals(await cache.byContentId(theirId), null);
      assertEquals((await cache.byInfohash(others.at(-1)!.infohashHex))?.name, "509");
      await cache.close();
    }
    assertLess((await readdir(join(directory, "wrappers-of-others"))).length, 1001);
  });
});
