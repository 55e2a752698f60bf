import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { hasCode } from "../../src/errors.ts";
import { againstRaw, ascii, frame, type Joined, joined, type JoinOptions, rawHandshake } from "./support/links.ts";
import { quiet } from "./support/memory-connection.ts";

/** Sends every message both ways; returns what arrived at each end after the handshakes. */
async function exchange(pair: Joined): Promise<unknown[][]> {
  const answers: unknown[][] = [];
  for (const [near, far] of [[pair.client, pair.atServer], [pair.server, pair.atClient]] as const) {
    const { length } = far.events;
    near.haveNone();
    near.have(7);
    near.interested();
    near.unchoke();
    near.sendDhtPort(6882);
    near.keepAlive();
    await quiet();
    const other = near === pair.client ? pair.server : pair.client;
    other.request(3, 16384, 16384);
    other.request(3, 32768, 1000);
    await quiet();
    near.piece(3, 16384, new Uint8Array(16384).fill(9));
    near.reject(3, 32768, 1000);
    near.uninterested();
    near.choke();
    await quiet();
    answers.push(far.events.slice(length).filter(([name]) => name !== "request"));
  }
  return answers;
}

const EXPECTED = [
  ["haveNone"],
  ["have", 7],
  ["interested"],
  ["unchoke"],
  ["dhtPort", 6882],
  ["blockTarget", 3, 16384, 16384],
  ["block", 3, 16384, 16384, true],
  ["reject", 3, 32768, 1000],
  ["uninterested"],
  ["choke"],
];

const VARIANTS: Record<string, JoinOptions> = {
  "in plaintext": {},
  "in plaintext, byte by byte": { cut: 1 },
  "in plaintext, 3 bytes at a time": { cut: 3 },
  "after an encrypted handshake": { client: { encryption: "prefer" } },
  "after an encrypted handshake, byte by byte": { cut: 1, client: { encryption: "prefer" } },
};

for (const [name, options] of Object.entries(VARIANTS)) {
  test(`links exchange every message both ways ${name}`, async () => {
    const pair = await joined(options);
    assertEquals(pair.atClient.names, ["ready", "extended"]);
    assertEquals(pair.atServer.names, ["ready", "extended"]);
    const [atServer, atClient] = await exchange(pair);
    assertEquals(atServer, EXPECTED);
    assertEquals(atClient, EXPECTED);
    assertEquals(pair.atServer.blocks[0], new Uint8Array(16384).fill(9));
    assertEquals(pair.server.counters.downloadedPayloadBytes, 16384);
    assertEquals(pair.client.counters.uploadedPayloadBytes, 16384);
    assertEquals(pair.client.counters.sentBytes, pair.server.counters.receivedBytes);
    pair.client.close();
    pair.client.close();
    await quiet();
    assertEquals(pair.atClient.of("close").length, 1);
    assertEquals(pair.atServer.of("close").length, 1);
    assertEquals(pair.atServer.closeError, null);
    assertEquals(pair.clock.pendingTimers, 0);
  });
}

test("connectPeer() exchanges identity, flags and extended handshake", async () => {
  const pair = await joined({
    client: { clientName: "millrace 9", listenPort: 8621, requestQueueLimit: 300, uploadOnly: true, dht: true },
    server: { fast: false, pex: false },
  });
  const [, info] = pair.atServer.of("extended")[0]!;
  assertEquals(info, {
    client: "millrace 9",
    requestQueueLimit: 300,
    metadataBytes: null,
    uploadOnly: true,
    listenPort: 8621,
    yourIp: "192.0.2.2",
    extensions: ["lt_donthave", "ut_metadata", "ut_pex"],
    live: null,
  });
  const ready = pair.atServer.of("ready")[0]![1] as { dht: boolean; fast: boolean; peerId: Uint8Array };
  assertEquals([ready.dht, ready.fast, ready.peerId.length], [true, false, 20]);
  assertEquals(new TextDecoder().decode(ready.peerId.subarray(0, 8)), "-MI0100-");
  assertEquals((pair.atClient.of("extended")[0]![1] as { extensions: string[] }).extensions, [
    "lt_donthave",
    "ut_metadata",
  ]);
});

test("request() sends all requests of one turn in one write", async () => {
  const { client, connections } = await joined();
  const before = connections[0].writes.length;
  client.interested();
  for (let i = 0; i < 100; i++) client.request(i, 0, 16384);
  await quiet();
  assertEquals(connections[0].writes.slice(before), [5 + 100 * 17]);
});

test("haveAll() sends a full bitfield when the far end has no fast extension", async () => {
  const { client, atServer } = await joined({ server: { fast: false } });
  client.setPieceCount(11);
  client.haveNone();
  client.haveAll();
  await quiet();
  assertEquals(atServer.of("bitfield"), [["bitfield", [0xff, 0xe0]]]);
});

test("bitfield() sends the bits as they were at the call", async () => {
  const { client, server, atServer } = await joined();
  server.setPieceCount(12);
  const bits = new Uint8Array([0xf0, 0x10]);
  client.bitfield(bits);
  bits.fill(0);
  await quiet();
  assertEquals(atServer.of("bitfield"), [["bitfield", [0xf0, 0x10]]]);
});

test("choke() rejects unanswered requests, and piece() then drops their blocks", async () => {
  const { client, server, atClient, atServer } = await joined();
  server.unchoke();
  await quiet();
  client.request(1, 0, 16384);
  client.request(2, 0, 16384);
  await quiet();
  server.choke();
  assert(server.piece(1, 0, new Uint8Array(16384)));
  server.reject(2, 0, 16384);
  await quiet();
  assertEquals(atServer.of("request").length, 2);
  assertEquals(atClient.of("reject"), [["reject", 1, 0, 16384], ["reject", 2, 0, 16384]]);
  assertEquals(atClient.of("block"), []);
});

test("cancel() withdraws an unanswered request, which is answered once, and reports other blocks to the far end", async () => {
  const { client, server, atClient, atServer } = await joined();
  server.unchoke();
  await quiet();
  client.request(1, 0, 16384);
  client.cancel(1, 0, 16384);
  client.cancel(5, 0, 16384);
  await quiet();
  server.piece(1, 0, new Uint8Array(16384));
  await quiet();
  assertEquals(atServer.of("cancel"), [["cancel", 1, 0, 16384]]);
  assertEquals(atServer.of("unwanted"), [["unwanted", 5, 0, 16384]]);
  assertEquals(atClient.of("reject"), [["reject", 1, 0, 16384]]);
  assertEquals(atClient.of("block"), []);
});

test("piece() returns false above the watermark and onDrain follows", async () => {
  const { client, server, connections } = await joined();
  server.unchoke();
  await quiet();
  for (let i = 0; i < 20; i++) client.request(i, 0, 16384);
  await quiet();
  connections[1].stuck = true;
  const room: boolean[] = [];
  for (let i = 0; i < 20; i++) room.push(server.piece(i, 0, new Uint8Array(16384)));
  assertEquals(room.indexOf(false), 15);
  assert(server.bufferedBytes > 262144);
  let drains = 0;
  server.onDrain = () => drains++;
  await quiet();
  assertEquals(drains, 0);
  connections[1].stuck = false;
  connections[1].schedule();
  await quiet();
  assertEquals([drains, server.bufferedBytes, client.counters.downloadedPayloadBytes], [1, 0, 20 * 16384]);
});

test("blockTarget() discards a block by returning null, and block() reports it", async () => {
  const { raw, events } = await againstRaw();
  events.discard = true;
  raw.send(frame(7, 1, 0, new Uint8Array(500)), frame(1));
  await quiet();
  assertEquals(events.of("block"), [["block", 1, 0, 500, false]]);
  assertEquals(events.names.at(-1), "unchoke");
});

test("pause() stops reading and resume() continues", async () => {
  const { raw, link, events } = await againstRaw();
  link.pause();
  raw.send(frame(1));
  await quiet();
  assertEquals(events.of("unchoke"), []);
  link.resume();
  await quiet();
  assertEquals(events.of("unchoke").length, 1);
});

test("a throwing handler closes its link with internal", async () => {
  const { raw, events } = await againstRaw();
  events.onEvent = ([name]) => {
    if (name === "unchoke") throw new TypeError("mistake");
  };
  raw.send(frame(1), frame(0));
  await quiet();
  assert(hasCode(events.closeError, "internal"));
  assertEquals(events.of("choke"), []);
});

test("a handler that throws in ready or metadataFailed closes its link with internal", async () => {
  const ready = await againstRaw({ shake: false });
  ready.events.onEvent = ([name]) => {
    if (name === "ready") throw new TypeError("mistake");
  };
  ready.raw.send(rawHandshake(true), frame(1));
  const failing = await againstRaw();
  failing.events.onEvent = ([name]) => {
    if (name === "metadataFailed") throw new TypeError("mistake");
  };
  failing.link.fetchMetadata();
  failing.raw.send(frame(20, Uint8Array.of(0), ascii("de")));
  await quiet();
  for (const { events } of [ready, failing]) assert(hasCode(events.closeError, "internal"));
  assertEquals(ready.events.names, ["ready", "close"]);
});

test("close() from a handler ends the reading at once", async () => {
  const { raw, link, events } = await againstRaw();
  events.onEvent = ([name]) => {
    if (name === "unchoke") link.close();
  };
  raw.send(frame(1), frame(0), frame(7, 1, 0, new Uint8Array(10)));
  await quiet();
  assertEquals(events.names.slice(-2), ["unchoke", "close"]);
  assertEquals(raw.closed, true);
});

test("close() gets null for an orderly end once the link is ready", async () => {
  const { raw, events } = await againstRaw();
  raw.connection.end();
  await quiet();
  assertEquals(events.of("close"), [["close", null]]);
});
