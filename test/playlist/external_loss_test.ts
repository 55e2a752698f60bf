/** What servers send with status 200 instead of their list, and lists that lose most of their items. */
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { LossError, requireCredible } from "../../src/playlist/external/loss.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { fails, listOf, type ListServer, useListServer, withLists } from "./external-support.ts";

const { server, add } = useListServer();
const DAY_MS = 86_400_000;

const channels = (count: number) =>
  Array.from({ length: count }, (_, i) => [`Ch ${i}`, `http://h/${i}.m3u8`] as [string, string]);

/** Bodies of servers in trouble; the first ones are no lists, the others lost nearly everything. */
const NO_LISTS: Record<string, string | Uint8Array> = {
  "an HTML comment first": "<!-- maintenance -->\n<html>\n<body>\nDown for maintenance\n</body>\n</html>\n",
  "HTML from its head on": "<head>\n<title>503</title>\n</head>\n<body>x</body>",
  "a warning of PHP":
    "<br />\n<b>Warning</b>:  connect(): Too many connections in <b>/get.php</b> on line <b>1</b><br />\n",
  "a script": '<script>window.location="/login"</script>',
  "JSON": '{"user_info":{"auth":0,"status":"Expired"}}',
  "JSON in lines": '{\n  "error": "rate limited",\n  "code": 429\n}\n',
  "a word of text": "Too Many Requests",
  "text with an address": "Your account is expired. Please renew:\nhttp://h.example/renew\nContact: support",
  "a picture": Uint8Array.of(0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 10, 1, 2, 3, 13, 10, 0x2f, 0x61),
  "an archive": Uint8Array.of(0x50, 0x4b, 3, 4, 20, 0, 0, 0, 10, 0x61, 0x2e, 0x6d, 0x33, 0x75, 10, 0x23),
  "nothing": "",
  "a header alone": "#EXTM3U\n",
  "a header and the message of a program": "#EXTM3U\ncurl: (6) Could not resolve host: provider\n",
  "a header and a message": "#EXTM3U\nToo many connections. Try later\n<b>Error</b>\n",
};
const LOSSES: Record<string, string> = {
  "one entry that tells why": "#EXTM3U\n#EXTINF:-1,ACCOUNT EXPIRED\nhttp://h/expired.mp4\n",
  "the first entry, cut off": listOf(...channels(20)).slice(0, 50),
};

const body = (content: string | Uint8Array): ListServer["behaviour"]["raw"] => (_request, response) =>
  void response.writeHead(200).end(content);

test("an error that is sent with status 200 changes no item and is told", async () => {
  await withLists(new FakeClock(), async ({ lists, items }) => {
    server.behaviour.text = listOf(...channels(20));
    const id = await add(lists);
    const before = [...(await items()).values()];
    for (const [what, content] of Object.entries({ ...NO_LISTS, ...LOSSES })) {
      server.behaviour.raw = body(content);
      const message = what in LOSSES ? /lacks (19|20) of its 20 items/ : /invalid playlist|no entries/;
      await fails(() => lists.updateExternal(id), message).catch((error) => {
        throw new Error(`${what}: ${error.message}`);
      });
      assertEquals([...(await items()).values()], before, what);
      assertMatch((await lists.external.get(id))[0]!.lastError, message, what);
      server.behaviour.raw = null;
      await lists.updateExternal(id);
      assertEquals((await lists.external.get(id))[0]!.lastError, "", what);
    }
  });
});

test("a list that lost most of its items counts when it is fetched by hand again, or a day later", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, items }) => {
    const enabled = async () => [...(await items()).values()].filter((item) => item.enabled).length;
    server.behaviour.text = listOf(...channels(30));
    const byHand = await add(lists);
    server.behaviour.text = listOf(...channels(14));
    await fails(() => lists.updateExternal(byHand), /lacks 16 of its 30 items/);
    assertEquals(await enabled(), 30);
    await lists.updateExternal(byHand);
    assertEquals(await enabled(), 14);
    await lists.deleteExternal(byHand);

    server.behaviour.text = listOf(...channels(30));
    const byTime = await add(lists, { updateInterval: 6 * 3600 });
    server.behaviour.text = listOf(...channels(14));
    // Asked no more often than usual: the server is fine.
    let asked = server.requests.length;
    for (let hours = 6; hours <= 30; hours += 6) {
      clock.advance(DAY_MS / 4);
      await lists.start();
      asked++;
      await until(
        "the update",
        async () =>
          server.requests.length === asked && (await lists.external.get(byTime))[0]!.nextUpdate * 1000 ===
            clock.now() + DAY_MS / 4 &&
          clock.pendingTimers === 1,
      );
      const { lastError } = (await lists.external.get(byTime))[0]!;
      assertEquals([await enabled(), lastError !== ""], hours < 30 ? [30, true] : [14, false], `${hours} h`);
    }
  });
});

test("requireCredible() doubts a loss by its size, its age and who asks", () => {
  const first = { since: 0, now: 1000, isByHand: true };
  const table: [present: number, lost: number, isCut: boolean, isDoubted: boolean][] = [
    [10, 10, false, false],
    [20, 10, true, false],
    [22, 11, false, false],
    [21, 11, false, true],
    [100_000, 50_001, false, true],
    [200, 21, true, true],
    [200, 20, true, false],
  ];
  for (const [present, lost, isCut, isDoubted] of table) {
    let error: unknown = null;
    try {
      requireCredible({ present, lost, isCut }, first);
    } catch (thrown) {
      error = thrown;
    }
    assertEquals(error instanceof LossError, isDoubted, `${lost} of ${present}`);
  }
  const loss = { present: 100, lost: 90, isCut: false };
  requireCredible(loss, { since: 999, now: 1000, isByHand: true });
  requireCredible(loss, { since: 1, now: 86_401, isByHand: false });
  requireCredible(loss, { since: 5000, now: 1000, isByHand: false });
});

test("a part of a list, or one that ends half-way, changes nothing", async () => {
  const text = listOf(...channels(200));
  const half = text.slice(0, text.length / 2);
  const packed = gzipSync(text);
  const ways: Record<string, ListServer["behaviour"]["raw"]> = {
    "206 unasked": (_request, response) => void response.writeHead(206).end(half),
    "a length that does not come": (_request, response) => {
      response.writeHead(200, { "content-length": String(text.length) });
      response.write(half, () => response.destroy());
    },
    "chunks without an end": (_request, response) => void response.write(half, () => response.destroy()),
    "neither length nor chunks": (_request, response) =>
      void response.socket!.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${half}`),
    "half of a packed body": (_request, response) =>
      void response.writeHead(200, { "content-encoding": "gzip" }).end(packed.subarray(0, packed.length / 2)),
  };
  await withLists(new FakeClock(), async ({ lists, items }) => {
    server.behaviour.text = text;
    const id = await add(lists);
    const before = [...(await items()).values()];
    for (const [way, raw] of Object.entries(ways)) {
      server.behaviour.raw = raw;
      await fails(() => lists.updateExternal(id), /./).catch((error) => {
        throw new Error(`${way}: ${error.message}`);
      });
      assertEquals([...(await items()).values()], before, way);
    }
  });
});

test("importList() adds nothing from anything but a list, and says so", async () => {
  await withLists(new FakeClock(), async ({ lists, items }) => {
    for (const [what, content] of Object.entries(NO_LISTS)) {
      // A list without entries adds nothing, and is no failure.
      if (what === "nothing" || what.startsWith("a header")) continue;
      server.behaviour.raw = body(content);
      const byUrl = lists.importUrl(`${server.url}/list.m3u`, "", true);
      const kept = await lists.keep(new Blob([content as BlobPart]).stream());
      for (const task of [byUrl, await lists.import(kept, "", true)]) {
        await lists.tasks.ended(task);
        assertMatch(lists.tasks.status(task).failure?.message ?? "none", /invalid playlist/, what);
      }
    }
    server.behaviour.raw = (_request, response) => void response.writeHead(206).end(listOf(...channels(3)));
    const part = lists.importUrl(`${server.url}/list.m3u`, "", true);
    await lists.tasks.ended(part);
    assertMatch(lists.tasks.status(part).failure?.message ?? "none", /answered 206/);
    assertEquals((await items()).size, 0);
  });
});
