/** Real clients over uTP (BEP 29), in both directions. Those with transmission need root: each has a network of its own. */
import { test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { start } from "../support/process.ts";
import { libtorrent } from "./peers/clients.ts";
import { assertFetched, withContent } from "./peers/content.ts";
import { playAll, withOurSeeder, withPlayer } from "./peers/ours.ts";

const TRANSMISSION = fileURLToPath(new URL("./support/transmission-utp.ts", import.meta.url));

test("libtorrent without TCP fetches from us", async () => {
  await withContent({ filmMib: 8 }, async (content, cleanup) => {
    await withOurSeeder(content, {}, async (ours) => {
      const fetcher = await libtorrent(content, { mode: "fetch", peers: [ours.peer], utp: "only" });
      cleanup(() => fetcher.stop());
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    });
  });
});

test("libtorrent with both is connected to us by its first SYN over uTP, and does not wait for TCP", async () => {
  await withContent({ filmMib: 1 }, async (content, cleanup) => {
    await withOurSeeder(content, {}, async (ours) => {
      const fetcher = await libtorrent(content, { mode: "fetch", peers: [ours.peer], utp: true });
      cleanup(() => fetcher.stop());
      const [, transport, ms] = await fetcher.program.line(/^BY (utp|tcp) (\d+)$/);
      // It dials after half a second, and is connected within 0.7 s. By TCP it is after 1.6 s if refused, after 4.5 s else.
      assertEquals(transport, "utp");
      assertLess(Number(ms), 4_000);
      await fetcher.done();
    });
  });
});

test("libtorrent without TCP fetches encrypted from us", async () => {
  await withContent({ filmMib: 1 }, async (content, cleanup) => {
    await withOurSeeder(content, {}, async (ours) => {
      const fetcher = await libtorrent(content, { mode: "fetch", peers: [ours.peer], utp: "only", encrypt: true });
      cleanup(() => fetcher.stop());
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    });
  });
});

for (const encrypt of [false, true]) {
  test(`plays what libtorrent without TCP seeds${encrypt ? ", encrypted" : ""}`, async () => {
    await withContent({}, async (content, cleanup) => {
      const seeder = await libtorrent(content, { mode: "seed", utp: "only", encrypt });
      cleanup(() => seeder.stop());
      await withPlayer({}, async (player) => {
        await playAll(player, content, { magnet: content.magnet({ peers: [seeder.peer] }) });
      });
    });
  });
}

for (
  const [way, name] of [["dials", "transmission-daemon dials us"], ["is-dialled", "plays from transmission-daemon"]]
) {
  test(`${name} over uTP, and everything arrives`, async () => {
    const program = start("unshare", ["-n", process.execPath, "run", "-A", "--no-check", TRANSMISSION, way!]);
    const timer = setTimeout(() => void program.stop(), 100_000);
    const code = await program.exited.finally(() => clearTimeout(timer));
    assertEquals(code, 0, program.output().slice(-2_000));
  });
}
