/** Looking names up while servers are silent; the servers here are sockets of the test. */
import dgram from "node:dgram";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createFetch } from "../../platform/shared/fetch.ts";
import { createHttpClient } from "../../platform/shared/http-client.ts";
import { Places } from "../../platform/shared/places.ts";
import { createResolver } from "../../platform/shared/resolver.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { serveWeb } from "../support/web.ts";

const never = new AbortController().signal;

/**
 * Answers A with 192.0.2.1 for names of `good.example`, and AAAA with 2001:db8::1 for `both.good.example`; says that
 * `none.example` is unknown, and is silent about all else.
 */
async function nameServer(body: (at: { server: string; asked: string[] }) => Promise<void>) {
  const socket = dgram.createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (query, from) => {
    const labels: string[] = [];
    let at = 12;
    for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString("latin1", at + 1, at + 1 + query[at]!));
    const name = labels.join(".").toLowerCase();
    const type = query.readUInt16BE(at + 1);
    asked.push(`${name} ${type}`);
    const isGood = name.endsWith("good.example") && (type === 1 || !name.startsWith("four."));
    if (!isGood && !name.endsWith("none.example")) return;
    const record = !isGood || (type !== 1 && name !== "both.good.example")
      ? []
      : type === 1
      ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]
      : [0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16, 0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), 1];
    const answers = record.length === 0 ? 0 : 1;
    const head = Buffer.from([query[0]!, query[1]!, 0x81, isGood ? 0x80 : 0x83, 0, 1, 0, answers, 0, 0, 0, 0]);
    socket.send(Buffer.concat([head, query.subarray(12, at + 5), Buffer.from(record)]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  try {
    await body({ server: `127.0.0.1:${socket.address().port}`, asked });
  } finally {
    await new Promise<void>((resolve) => socket.close(() => resolve()));
  }
}

/** A system that knows no name, and notes which it was asked about. */
function unknowing() {
  const asked: string[] = [];
  return { asked, system: (host: string) => (asked.push(host), Promise.resolve<string[]>([])) };
}

test("createResolver() finds a name at once while torrents look up a hundred silent ones", async () => {
  await nameServer(async ({ server, asked }) => {
    const { system, asked: askedSystem } = unknowing();
    const resolve = createResolver({ servers: [server], system });
    const gone = new AbortController();
    const silent = Array.from(
      { length: 100 },
      (_, i) =>
        assertRejects(
          () => resolve(`t${i}.silent.example`, { signal: gone.signal, holder: `torrent ${i % 5}` }),
          MillraceError,
        ),
    );
    assertEquals(await resolve("own.good.example", { signal: never }), ["192.0.2.1"]);
    const names = new Set(asked.map((line) => line.split(" ")[0]));
    names.delete("own.good.example");
    assert(names.size <= 16, `${names.size} names of torrents were asked about`);
    gone.abort();
    for (const error of await Promise.all(silent)) assertEquals(error.code, "aborted");
    // The places are free again at once.
    assertEquals(await resolve("two.good.example", { signal: never, holder: "torrent 1" }), ["192.0.2.1"]);
    assertEquals(askedSystem, []);
  });
});

test("createResolver() returns IPv6 addresses first where the machine has one of the Internet, else last", async () => {
  await nameServer(async ({ server }) => {
    for (const hasIpv6 of [true, false]) {
      const resolve = createResolver({ servers: [server], system: unknowing().system, hasIpv6: () => hasIpv6 });
      const [first, second] = await resolve("both.good.example", { signal: never });
      assertEquals([first, second], hasIpv6 ? ["2001:db8::1", "192.0.2.1"] : ["192.0.2.1", "2001:db8::1"]);
    }
  });
});

test("createResolver() asks the system about .local in any case and with a final dot, and completes a name in a folder", async () => {
  await nameServer(async ({ server, asked }) => {
    const seen: string[] = [];
    const system = (host: string) => Promise.resolve(seen.push(host) > 0 ? ["192.0.2.8"] : []);
    const resolve = createResolver({ servers: [server], system });
    for (const host of ["TV.Local", "tv.local.", "nas"]) {
      assertEquals(await resolve(host, { signal: never }), ["192.0.2.8"]);
    }
    assertEquals([seen, asked], [["TV.Local", "tv.local", "nas"], []]);
    // Only the system knows its search domains; the servers are asked about the name as it is.
    assertEquals(await resolve("box.none.example", { signal: never }), ["192.0.2.8"]);
    assertEquals(seen.at(-1), "box.none.example");
  });
});

test("createResolver() does not wait for a family of addresses that is silent", async () => {
  await nameServer(async ({ server, asked }) => {
    const resolve = createResolver({ servers: [server], system: unknowing().system });
    assertEquals(await resolve("four.good.example", { signal: never }), ["192.0.2.1"]);
    const before = asked.length;
    assertEquals(await resolve("four.good.example", { signal: never }), ["192.0.2.1"]);
    assertEquals(asked.length, before, "the answer is used again");
  });
});

test("createResolver() asks the system about names of the local network, and about names that servers do not know", async () => {
  await nameServer(async ({ server, asked }) => {
    const found: Record<string, string[]> = {
      nas: ["192.0.2.7"],
      "tv.local": ["192.0.2.8"],
      "x.none.example": ["192.0.2.9"],
    };
    const resolve = createResolver({ servers: [server], system: (host) => Promise.resolve(found[host] ?? []) });
    assertEquals(await resolve("nas", { signal: never }), ["192.0.2.7"]);
    assertEquals(await resolve("tv.local", { signal: never }), ["192.0.2.8"]);
    assertEquals(asked, []);
    assertEquals(await resolve("x.none.example", { signal: never }), ["192.0.2.9"]);
    for (const [host, holder] of [["y.none.example", undefined], ["x.none.example", "a torrent"]] as const) {
      const error = await assertRejects(() => resolve(host, { signal: never, ...holder && { holder } }), MillraceError);
      assertEquals(error.code, "not_found");
    }
  });
});

test("createResolver() asks the system when there is no server, and a hanging answer holds up no other kind of name", async () => {
  const closed = dgram.createSocket("udp4");
  await new Promise<void>((resolve) => closed.bind(0, "127.0.0.1", resolve));
  const server = `127.0.0.1:${closed.address().port}`;
  await new Promise<void>((resolve) => closed.close(() => resolve()));
  const hanging = (host: string, signal: AbortSignal) =>
    host === "a.example" || host === "nas"
      ? Promise.resolve(["192.0.2.7"])
      : new Promise<string[]>((resolve) => signal.addEventListener("abort", () => resolve([])));
  const resolve = createResolver({ servers: [server], system: hanging });
  assertEquals(await resolve("a.example", { signal: never }), ["192.0.2.7"]);
  const gone = new AbortController();
  const waiting = Array.from(
    { length: 20 },
    (_, i) =>
      assertRejects(() => resolve(`t${i}.local`, { signal: gone.signal, holder: `torrent ${i}` }), MillraceError),
  );
  assertEquals(await resolve("nas", { signal: never }), ["192.0.2.7"]);
  gone.abort();
  await Promise.all(waiting);
});

test("createResolver() reads the hosts file, also after it has changed, and knows localhost without it", async () => {
  const directory = await mkdtemp(path.join(os.tmpdir(), "hosts-"));
  try {
    const hostsFile = path.join(directory, "hosts");
    const { system } = unknowing();
    let hasIpv6 = false;
    const resolve = createResolver({ hostsFile, system, servers: ["127.0.0.1:9"], hasIpv6: () => hasIpv6 });
    assertEquals(await resolve("localhost", { signal: never }), ["127.0.0.1", "::1"]);
    await writeFile(hostsFile, "# 192.0.2.1 nas\n2001:db8::1 nas\n192.0.2.2\tnas Nas.lan # nas\nnonsense nas\n");
    assertEquals(await resolve("nas", { signal: never }), ["192.0.2.2", "2001:db8::1"]);
    hasIpv6 = true;
    assertEquals(await resolve("nas", { signal: never }), ["2001:db8::1", "192.0.2.2"]);
    hasIpv6 = false;
    assertEquals(await resolve("NAS.lan.", { signal: never }), ["192.0.2.2"]);
    await writeFile(hostsFile, "192.0.2.33 nas\n");
    assertEquals(await resolve("nas", { signal: never }), ["192.0.2.33"]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("Places.run() keeps places for work without a holder, passes over holders that have theirs, and bounds who waits", async () => {
  const places = new Places({ total: 4, held: 3, perHolder: 2, waiting: 3 });
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (name: string, holder: string | null, signal = never) =>
    places.run(holder, signal, () => new Promise<void>((resolve) => (running.push(name), ends.set(name, resolve))));
  void run("a1", "a"), run("a2", "a"), run("a3", "a"), run("b1", "b"), run("b2", "b"), run("own", null);
  await settle();
  assertEquals(running, ["a1", "a2", "b1", "own"]);
  const gone = new AbortController();
  const given = assertRejects(() => run("c1", "c", gone.signal), MillraceError);
  assertEquals((await assertRejects(() => run("c2", "c"), MillraceError)).code, "too_busy");
  gone.abort();
  assertEquals((await given).code, "aborted");
  ends.get("b1")!();
  await settle();
  assertEquals(running.slice(4), ["b2"], "b has a place again, a has its two");
  for (const name of ["a1", "a2"]) ends.get(name)!();
  await settle();
  assertEquals(running.slice(5), ["a3"]);
});

test("createFetch() asks the address that its resolver found, and sends the name", async () => {
  const web = await serveWeb((request, response) => response.end(`${request.headers.host} ${request.method}`));
  try {
    const looked: string[] = [];
    const network = {
      resolve: (host: string) => (looked.push(host), Promise.resolve(["127.0.0.1"])),
    };
    const fetch = createFetch({ httpClient: createHttpClient(), network, clock: new FakeClock() });
    const answer = await fetch(`http://nas.example:${web.port}/x`, { redirect: "manual" });
    assertEquals([answer.status, await answer.text()], [200, `nas.example:${web.port} GET`]);
    await (await fetch(`${web.base}/x`, { redirect: "manual" })).text();
    assertEquals(looked, ["nas.example"]);
  } finally {
    await web.close();
  }
});
