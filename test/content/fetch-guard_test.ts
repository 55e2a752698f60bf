import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { guardedFetch, guardedOpen } from "../../src/content/fetch-guard.ts";
import { NetworkSurroundings } from "../../src/discovery/nearness.ts";
import { type ErrorCode, MillraceError } from "../../src/errors.ts";
import { type Answer, fakeWeb } from "../support/fake-web.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";

const LIMITS = { maxBytes: 1000, timeoutMs: 5000, allowPrivate: false };
const OPEN = { ...LIMITS, allowPrivate: true };
const never = new AbortController().signal;

const moved = (location: string, status = 302): Answer => () => new Response(null, { status, headers: { location } });
const text = async (opened: { body: ReadableStream<Uint8Array> }) => await new Response(opened.body).text();
async function codeOf(work: () => Promise<unknown>): Promise<ErrorCode> {
  return (await assertRejects(work, MillraceError)).code;
}

test("guardedOpen() refuses private targets, also when a redirect or a name leads to them", async () => {
  const { ports, asked } = fakeWeb({ "http://pub.example/": moved("http://10.0.0.1/x") }, {
    "mixed.example": [["8.8.8.8", "127.0.0.1"]],
    "nowhere.example": [[]],
  });
  const table: [string, ErrorCode][] = [
    ["http://127.0.0.1/", "denied"],
    ["http://0x7f.1/", "denied"],
    ["http://2130706433/", "denied"],
    ["http://[::1]/", "denied"],
    ["http://[::ffff:7f00:1]/", "denied"],
    ["http://mixed.example/", "denied"],
    ["http://nowhere.example/", "not_found"],
    ["http://pub.example/", "denied"],
  ];
  for (const [url, code] of table) assertEquals(await codeOf(() => guardedOpen(ports, url, LIMITS, never)), code, url);
  assertEquals(asked.map(({ url }) => url.href), ["http://pub.example/"]);
});

test("guardedOpen() takes this machine's public addresses and subnets for private, and its router's", async () => {
  const { ports, asked } = fakeWeb({
    "http://pub.example/": moved("http://9.9.9.9:6878/"),
    "http://far.example/": moved("/"),
  }, {
    "own.example": [["9.9.9.9"]],
    "neighbour.example": [["11.22.33.41"]],
    "home.example": [["8.8.8.8", "2a01:db::6"]],
    "router.example": [["93.184.216.34"]],
  });
  const at = (host: string, prefixLength: number) => {
    return { name: "eth0", host, prefixLength, family: host.includes(":") ? 6 : 4, loopback: false } as const;
  };
  const network = {
    ...ports.network,
    interfaces: () => [at("9.9.9.9", 32), at("11.22.33.44", 29), at("2a01:db::5", 64)],
  };
  const surroundings = new NetworkSurroundings(network, () => 0);
  const here = { ...ports, network, surroundings };
  const router = () => guardedOpen(here, "http://router.example/", { ...LIMITS, timeoutMs: 1 }, AbortSignal.abort());
  assertEquals(await codeOf(router), "aborted");
  assertEquals(asked.splice(0).length, 1);
  for (const peer of ["5.5.5.5", "6.6.6.6", "7.7.7.7"]) surroundings.external.report("93.184.216.34", peer);
  for (
    const url of [
      "http://9.9.9.9:6878/engine/playlist.m3u",
      "http://[::ffff:9.9.9.9]/",
      "http://0x09090909/",
      "http://own.example/",
      "http://11.22.33.41/",
      "http://neighbour.example/",
      "http://[2a01:db::6]/",
      "http://home.example/",
      "http://pub.example/",
      "http://93.184.216.34/",
      "http://router.example/",
    ]
  ) {
    assertEquals(await codeOf(() => guardedOpen(here, url, LIMITS, never)), "denied", url);
  }
  assertEquals(asked.map(({ url }) => url.href), ["http://pub.example/"]);
  // The interfaces count even if the router is unknown.
  assertEquals(await codeOf(() => guardedOpen({ ...ports, network }, "http://9.9.9.9/", LIMITS, never)), "denied");
  // For callers on this machine all of that is open; the rest of the Internet is for everybody.
  const far = guardedOpen(here, "http://far.example/", LIMITS, never);
  assertEquals(await codeOf(() => far), "connection_failed");
});

test("guardedOpen() connects to the checked address even when the name's addresses change", async () => {
  const changing = { "turn.example": [["8.8.8.8"], ["127.0.0.1"]] };
  const { ports, asked, looked } = fakeWeb({ "http://turn.example/": () => new Response("fine") }, changing);
  assertEquals(await text(await guardedOpen(ports, "http://turn.example/", LIMITS, never)), "fine");
  assertEquals([looked, asked.map(({ address }) => address)], [["turn.example"], ["8.8.8.8"]]);
  assertEquals(await codeOf(() => guardedOpen(ports, "http://turn.example/", LIMITS, never)), "denied");
  assertEquals(asked.length, 1);
});

test("guardedOpen() checks a name again at each redirect", async () => {
  const { ports, asked } = fakeWeb(
    { "http://turn.example/": moved("/again"), "http://turn.example/again": () => new Response("secret") },
    { "turn.example": [["8.8.8.8"], ["127.0.0.1"]] },
  );
  assertEquals(await codeOf(() => guardedOpen(ports, "http://turn.example/", LIMITS, never)), "denied");
  assertEquals(asked.length, 1);
});

test("guardedOpen() reaches a server only by the checked address", async () => {
  const web = await serveWeb((request, response) => response.end(request.headers.host));
  try {
    const real = await loadPorts();
    const turns = [["127.0.0.1"], ["127.0.0.2"]];
    const ports = { ...real, network: { ...real.network, resolve: () => Promise.resolve(turns.shift()!) } };
    const url = `http://turn.invalid:${web.port}/`;
    assertEquals(await text(await guardedOpen(ports, url, OPEN, never)), `turn.invalid:${web.port}`);
    assertEquals(turns.length, 1);
    assertEquals(await codeOf(() => guardedOpen(ports, url, OPEN, never)), "connection_failed");
  } finally {
    await web.close();
  }
});

test("guardedOpen() lets the server go when a body is cancelled, packed or not, and when it is too large", async () => {
  const open = new Set<string>();
  const bytes = noise(256 * 1024);
  const packed = gzipSync(bytes);
  // Bodies that are never ended.
  const web = await serveWeb(({ url }, response) => {
    open.add(url!);
    response.on("close", () => open.delete(url!));
    if (url === "/packed") response.setHeader("content-encoding", "gzip");
    response.write(url === "/packed" ? packed : bytes);
  });
  try {
    const ports = await loadPorts();
    const patient = { timeoutMs: 30_000, allowPrivate: true };
    for (const path of ["/plain", "/packed"]) {
      const { body } = await guardedOpen(ports, web.base + path, patient, never);
      const reader = body.getReader();
      assertEquals((await reader.read()).done, false);
      await reader.cancel();
      await until(`${path} is let go`, () => !open.has(path));
    }
    for (const path of ["/plain", "/packed"]) {
      assertEquals(
        await codeOf(() => guardedFetch(ports, web.base + path, { ...patient, maxBytes: 1000 }, never)),
        "too_large",
      );
      await until(`${path} is let go`, () => !open.has(path));
    }
  } finally {
    await web.close();
  }
});

test("guardedOpen() tries the next address when one refuses or stays silent", async () => {
  const names = { "two.example": [["8.8.8.8", "8.8.4.4"]] };
  const refusing = fakeWeb({
    "http://two.example/": ({ address }) =>
      address === "8.8.8.8" ? new MillraceError("connection_failed", "refused") : new Response("second"),
  }, names);
  assertEquals(await text(await guardedOpen(refusing.ports, "http://two.example/", LIMITS, never)), "second");
  const silent = fakeWeb({
    "http://two.example/": ({ address }) =>
      (address === "8.8.8.8" ? undefined : new Response("second")) as unknown as Response,
  }, names);
  const pending = guardedOpen(silent.ports, "http://two.example/", { ...LIMITS, timeoutMs: 20_000 }, never);
  await silent.clock.advanceAsync(5000);
  assertEquals(await text(await pending), "second");
});

test("guardedOpen() sends the caller's fields to their own origin only", async () => {
  const headers = {
    authorization: "Basic x",
    "if-none-match": '"1"',
    cookie: "c",
    range: "bytes=0-9",
    "user-agent": "player",
  };
  const { ports, asked } = fakeWeb({
    "http://a.example/": moved("/b"),
    "http://a.example/b": moved("https://a.example/c"),
    "https://a.example/c": moved("http://a.example/d"),
    "http://a.example/d": () => new Response("end"),
  });
  const opened = await guardedOpen(ports, "http://a.example/", { ...LIMITS, headers }, never);
  assertEquals(opened.url, "http://a.example/d");
  const own = { ...headers, "accept-encoding": "identity" };
  const foreign = { "accept-encoding": "identity", range: "bytes=0-9", "user-agent": "player" };
  assertEquals(asked.map((request) => Object.fromEntries(request.headers)), [own, own, foreign, foreign]);
});

test("guardedOpen() sends a URL's credentials as Basic authentication (RFC 7617)", async () => {
  const { ports, asked } = fakeWeb({
    "http://us%C3%A9r:p%3Aw@a.example/": moved("http://b.example/"),
    "http://b.example/": () => new Response("end"),
  });
  await guardedOpen(ports, "http://usér:p%3Aw@a.example/", LIMITS, never);
  const expected = `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode("usér:p:w")))}`;
  assertEquals(asked.map(({ headers }) => headers.get("authorization")), [expected, null]);
});

test("guardedOpen() returns answers of any status, and refuses invalid requests", async () => {
  const { ports } = fakeWeb({
    "http://a.example/304": () => new Response(null, { status: 304, headers: { etag: '"1"' } }),
    "http://a.example/401": () => new Response("who?", { status: 401 }),
    "http://a.example/loop": moved("/loop", 308),
    "http://a.example/ftp": moved("ftp://a.example/"),
    "http://a.example/br": () => new Response("x", { headers: { "content-encoding": "br" } }),
    "http://a.example/odd": () => new TypeError("odd") as never,
  });
  const kept = await guardedOpen(ports, "http://a.example/304", LIMITS, never);
  assertEquals([kept.status, kept.headers.get("etag"), await text(kept)], [304, '"1"', ""]);
  assertEquals((await guardedOpen(ports, "http://a.example/401", LIMITS, never)).status, 401);
  const table: [string, ErrorCode][] = [
    ["http://a.example/loop", "connection_failed"],
    ["http://a.example/ftp", "invalid_argument"],
    ["http://a.example/br", "protocol_violation"],
    ["http://a.example/odd", "connection_failed"],
    ["ftp://a.example/", "invalid_argument"],
    ["::", "invalid_argument"],
  ];
  for (const [url, code] of table) assertEquals(await codeOf(() => guardedOpen(ports, url, LIMITS, never)), code, url);
  const split = { ...LIMITS, headers: { "x-a": "b\r\nx-c: d" } };
  assertEquals(await codeOf(() => guardedOpen(ports, "http://a.example/", split, never)), "invalid_argument");
});

test("guardedOpen() unpacks gzip and stops a bomb at the limit", async () => {
  const packed = (bytes: Uint8Array) => () =>
    new Response(bytes as Uint8Array<ArrayBuffer>, {
      headers: { "content-encoding": "gzip", "content-length": String(bytes.length) },
    });
  const bomb = gzipSync(new Uint8Array(64 * 1024 * 1024));
  const { ports } = fakeWeb({
    "http://a.example/text": packed(gzipSync("text")),
    "http://a.example/bomb": packed(bomb),
    "http://a.example/damaged": packed(new Uint8Array(50).fill(7)),
  });
  const opened = await guardedOpen(ports, "http://a.example/text", LIMITS, never);
  assertEquals([await text(opened), opened.headers.get("content-length")], ["text", null]);
  const bombed = await guardedOpen(ports, "http://a.example/bomb", { ...LIMITS, maxBytes: 100_000 }, never);
  let seen = 0;
  const read = async () => {
    for await (const chunk of bombed.body) seen += chunk.length;
  };
  assertEquals(await codeOf(read), "too_large");
  assertEquals(seen <= 100_000, true);
  const damaged = await guardedOpen(ports, "http://a.example/damaged", LIMITS, never);
  assertEquals(await codeOf(() => text(damaged)), "protocol_violation");
});

test("guardedOpen() bounds what it reads itself, and passes endless bodies to their reader", async () => {
  const endless = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(400));
        },
      }),
    );
  const { ports } = fakeWeb({ "http://a.example/": endless });
  const limited = await guardedOpen(ports, "http://a.example/", LIMITS, never);
  assertEquals(await codeOf(() => text(limited)), "too_large");
  const { maxBytes: _, ...unlimited } = LIMITS;
  const opened = await guardedOpen(ports, "http://a.example/", unlimited, never);
  const reader = opened.body.getReader();
  for (let i = 0; i < 100; i++) assertEquals((await reader.read()).value?.length, 400);
  await reader.cancel();
});

test("guardedOpen() gives up on silence before the head and within the body, and when the signal fires", async () => {
  const { ports, clock, asked } = fakeWeb({
    "http://slow.example/": () =>
      new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) })),
  });
  const silent = guardedOpen(ports, "http://silent.example/", LIMITS, never);
  silent.catch(() => {});
  await clock.advanceAsync(5001);
  assertEquals(await codeOf(() => silent), "timeout");

  const opened = await guardedOpen(ports, "http://slow.example/", { ...LIMITS, idleMs: 9000 }, never);
  await clock.advanceAsync(60_000);
  const reader = opened.body.getReader();
  assertEquals((await reader.read()).value?.length, 1);
  const waiting = reader.read();
  waiting.catch(() => {});
  await clock.advanceAsync(9001);
  assertEquals(await codeOf(() => waiting), "timeout");
  assertEquals(asked.at(-1)?.signal.aborted, true);

  const control = new AbortController();
  const followed = await guardedOpen(ports, "http://slow.example/", LIMITS, control.signal);
  control.abort(new MillraceError("closed", "over"));
  assertEquals(await codeOf(() => text(followed)), "closed");
  assertEquals(clock.pendingTimers, 0);
});

/** A body that breaks off before anybody reads it. */
function broken(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.error(new Error("reset")) });
}

test("guardedFetch() reads a body within its limit and follows redirects", async () => {
  const { ports, clock } = fakeWeb({
    "http://a/": moved("/b", 301),
    "http://a/b": () => new Response("hello", { headers: { "content-type": "text/x" } }),
    "http://a/big": () => new Response("x".repeat(2000)),
    "http://a/said": () => new Response("x", { headers: { "content-length": "2000" } }),
    "http://a/none": () => new Response("no", { status: 404 }),
    "http://a/gone": () => new Response("no", { status: 410 }),
    "http://a/fault": () => new Response("no", { status: 500 }),
    "http://a/broken": () => new Response(broken(), { status: 404 }),
    "http://a/broken-turn": () => new Response(broken(), { status: 302, headers: { location: "/b" } }),
    "http://a/stuck": () => new Response(new ReadableStream()),
  });
  const { bytes, ...rest } = await guardedFetch(ports, "http://a/", OPEN, never);
  assertEquals(new TextDecoder().decode(bytes), "hello");
  assertEquals(rest, { url: "http://a/b", contentType: "text/x" });
  const table: [string, ErrorCode][] = [
    ["http://a/big", "too_large"],
    ["http://a/said", "too_large"],
    ["http://a/none", "not_found"],
    ["http://a/gone", "not_found"],
    ["http://a/broken", "not_found"],
    ["http://a/fault", "connection_failed"],
  ];
  for (const [url, code] of table) assertEquals(await codeOf(() => guardedFetch(ports, url, OPEN, never)), code, url);
  assertEquals((await guardedFetch(ports, "http://a/broken-turn", OPEN, never)).url, "http://a/b");
  const stuck = guardedFetch(ports, "http://a/stuck", OPEN, never);
  stuck.catch(() => {});
  await clock.advanceAsync(5001);
  assertEquals(await codeOf(() => stuck), "timeout");
  assertEquals(clock.pendingTimers, 0);
});
