/** Our engine is the only seeder; other clients fetch everything from it. */
import { test } from "node:test";
import { assert } from "@std/assert";
import { aria2, type ClientOptions, libtorrent, type StartClient, transmission } from "./peers/clients.ts";
import { assertFetched, type Content, withContent } from "./peers/content.ts";
import { allOf, type OurSeeder, withOurSeeder } from "./peers/ours.ts";

/** Starts a fetcher, brings the two together, waits for the end and compares. */
async function fetches(startClient: StartClient, content: Content, seeder: OurSeeder, options: Partial<ClientOptions>) {
  const fetcher = await startClient(content, { mode: "fetch", ...options });
  try {
    if (options.peers === undefined) seeder.dial(fetcher.peer);
    await fetcher.done();
    await assertFetched(content, fetcher.directory);
  } finally {
    await fetcher.stop();
  }
}

test("libtorrent fetches from us by transport file and by magnet", async () => {
  await withContent({}, (content) =>
    withOurSeeder(content, {}, async (seeder) => {
      const peers = [seeder.peer];
      await fetches(libtorrent, content, seeder, { peers });
      await fetches(libtorrent, content, seeder, { peers, magnet: content.magnet() });
    }));
});

test("aria2c fetches from us by transport file and by magnet", async () => {
  await withContent({}, (content) =>
    withOurSeeder(content, {}, async (seeder) => {
      await allOf([
        fetches(aria2, content, seeder, {}),
        fetches(aria2, content, seeder, { magnet: content.magnet() }),
      ]);
    }));
});

test("libtorrent fetches from us with encryption required", async () => {
  await withContent({}, (content) =>
    withOurSeeder(content, {}, async (seeder) => {
      await fetches(libtorrent, content, seeder, { encrypt: true, peers: [seeder.peer] });
    }));
});

// Side by side: transmission-daemon takes ten seconds to find a peer interesting.
test("transmission-daemon fetches from us by transport file, and with encryption required by magnet", async () => {
  await withContent({ filmMib: 2 }, async (content) => {
    const plain = withOurSeeder(content, {}, (seeder) => fetches(transmission, content, seeder, {}));
    const encrypted = withOurSeeder(content, {}, async (seeder) => {
      await fetches(transmission, content, seeder, { encrypt: true, magnet: content.magnet() });
    });
    await allOf([plain, encrypted]);
  });
});

test("two different clients fetch only from us at the same time, within the upload limit", async () => {
  const uploadLimitBytesPerSecond = 2 * 2 ** 20;
  await withContent(
    { filmMib: 3 },
    (content) =>
      withOurSeeder(content, { uploadLimitBytesPerSecond }, async (seeder) => {
        const startedMs = performance.now();
        await Promise.all([
          fetches(libtorrent, content, seeder, { peers: [seeder.peer] }),
          fetches(aria2, content, seeder, {}),
        ]);
        const seconds = (performance.now() - startedMs) / 1000;
        const sentBytes = seeder.swarm.status().uploadedBytes;
        // A burst of a second's worth is allowed at the start.
        const mostBytes = uploadLimitBytesPerSecond * (seconds + 1);
        assert(sentBytes <= mostBytes, `${sentBytes} bytes sent in ${seconds} s`);
      }),
  );
});
