import { test } from "node:test";
import bencode from "bencode";
import { assert, assertEquals } from "@std/assert";
import { hasCode } from "../../src/errors.ts";
import { hex20 } from "../../src/wire/peer-id.ts";
import { acceptPeer, connectPeer, createPeerId } from "../../src/wire/mod.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { againstRaw, ascii, frame, joined, type JoinOptions, rawHandshake, Recorder, seeded } from "./support/links.ts";
import { connectionPair, quiet, until } from "./support/memory-connection.ts";

/** Noise, and its SHA-1. */
async function info(size: number): Promise<{ bytes: Uint8Array<ArrayBuffer>; infohash: Uint8Array; hex: string }> {
  const random = seeded(size);
  const bytes = Uint8Array.from({ length: size }, () => Math.floor(random() * 256));
  const infohash = new Uint8Array(await crypto.subtle.digest("SHA-1", bytes));
  return { bytes, infohash, hex: hex20(infohash) };
}

function over(at: Recorder): boolean {
  return at.of("metadata").length + at.of("metadataFailed").length > 0;
}

async function metadataPair(infohash: Uint8Array, hex: string, options: JoinOptions = {}) {
  return await joined({
    ...options,
    client: { infohash, ...options.client },
    server: { infohash, candidates: () => [hex], ...options.server },
  });
}

for (const size of [1, 16384, 16385, 1_500_000, 8 << 20]) {
  test(`fetchMetadata() fetches ${size} bytes that setMetadata() serves`, async () => {
    const { bytes, infohash, hex } = await info(size);
    const { client, server, atClient, clock } = await metadataPair(infohash, hex);
    server.setMetadata(bytes);
    await quiet();
    assertEquals((atClient.of("extended").at(-1)![1] as { metadataBytes: number }).metadataBytes, size);
    client.fetchMetadata();
    client.fetchMetadata();
    await until(() => over(atClient));
    assertEquals(atClient.of("metadata").length, 1);
    assertEquals(
      hex20(
        new Uint8Array(await crypto.subtle.digest("SHA-1", atClient.of("metadata")[0]![1] as Uint8Array<ArrayBuffer>)),
      ),
      hex,
    );
    client.close();
    await quiet();
    assertEquals(clock.pendingTimers, 0);
  });
}

test("fetchMetadata() and setMetadata() called before the handshake take effect with it", async () => {
  const { bytes, infohash, hex } = await info(40_000);
  const clock = new FakeClock();
  const [ours, theirs] = connectionPair(5);
  acceptPeer(theirs, {
    clock,
    candidates: () => [hex],
    lookup: () => ({
      infohash,
      peerId: createPeerId(),
      attach: (link) => {
        queueMicrotask(() => link.setMetadata(bytes));
        return new Recorder();
      },
    }),
  });
  const at = new Recorder();
  const link = connectPeer(ours, { clock, infohash, peerId: createPeerId(), handlers: at });
  at.onEvent = ([name, extended]) => {
    if (name === "extended" && (extended as { metadataBytes: number | null }).metadataBytes !== null) {
      link.fetchMetadata();
    }
  };
  await until(() => over(at));
  assertEquals(at.of("metadata").length, 1);

  const early = await againstRaw({ shake: false });
  early.link.fetchMetadata();
  early.raw.send(rawHandshake(true), frame(20, Uint8Array.of(0), ascii("d1:md11:ut_metadatai4ee13:metadata_sizei5ee")));
  early.raw.received = [];
  await quiet();
  const request = frame(20, Uint8Array.of(4), ascii("d8:msg_typei0e5:piecei0ee"));
  assertEquals(early.raw.received.slice(-request.length), request);
});

test("infoBytes in the settings is announced in the first extended handshake, by both sides", async () => {
  const { bytes, infohash, hex } = await info(20_000);
  for (
    const [side, options] of [["atServer", { client: { infoBytes: bytes } }], ["atClient", {
      server: { infoBytes: bytes },
    }]] as const
  ) {
    const pair = await metadataPair(infohash, hex, options);
    await quiet();
    const told = pair[side].of("extended").map(([, extended]) => (extended as { metadataBytes: number }).metadataBytes);
    assertEquals(told, [bytes.length], side);
    pair.client.close();
  }
});

test("fetchMetadata() fails when the far end has no metadata, refuses, lies or stalls", async () => {
  const { bytes, infohash, hex } = await info(20_000);
  const none = await metadataPair(infohash, hex);
  none.client.fetchMetadata();
  await quiet();
  assert(hasCode(none.atClient.of("metadataFailed")[0]![1], "unavailable"));

  const without = await metadataPair(infohash, hex, { server: { metadata: false } });
  without.client.fetchMetadata();
  await quiet();
  assert(hasCode(without.atClient.of("metadataFailed")[0]![1], "unavailable"));

  const lying = await metadataPair(infohash, hex);
  lying.server.setMetadata(bytes.map((byte) => byte ^ 1));
  await quiet();
  lying.client.fetchMetadata();
  await until(() => over(lying.atClient));
  assert(hasCode(lying.atClient.of("metadataFailed")[0]![1], "protocol_violation"));

  const offer = frame(20, Uint8Array.of(0), ascii("d1:md11:ut_metadatai4ee13:metadata_sizei20000ee"));
  for (
    const [answer, code] of [
      ["d8:msg_typei2e5:piecei1ee", "unavailable"],
      ["d8:msg_typei1e5:piecei1e10:total_sizei20000eeshort", "protocol_violation"],
      ["", "timeout"],
    ] as const
  ) {
    const { raw, link, events, clock } = await againstRaw();
    raw.send(offer);
    link.fetchMetadata();
    await quiet();
    raw.send(frame(20, Uint8Array.of(1), ascii("d8:msg_typei1e5:piecei7eexx")));
    if (answer !== "") raw.send(frame(20, Uint8Array.of(1), ascii(answer)));
    await quiet();
    clock.advance(20_000);
    await quiet();
    assertEquals(events.of("metadataFailed").length, 1);
    assert(hasCode(events.of("metadataFailed")[0]![1], code));
    assertEquals(events.of("close"), []);
  }
});

test("fetchMetadata() learns the size from the first piece when the handshake does not state it", async () => {
  for (const size of [100, 16384, 40_000]) {
    const { bytes, infohash } = await info(size);
    const { raw, link, events } = await againstRaw({ link: { infohash }, shake: false });
    raw.send([19, ...ascii("BitTorrent protocol"), 0, 0, 0, 0, 0, 16, 0, 4, ...infohash, ...new Array(20).fill(1)]);
    raw.send(frame(20, Uint8Array.of(0), ascii("d1:md11:ut_metadatai4eee")));
    link.fetchMetadata();
    for (let piece = 0; piece * 16384 < size; piece++) {
      await quiet();
      const head = ascii(`d8:msg_typei1e5:piecei${piece}e10:total_sizei${size}ee`);
      raw.send(frame(20, Uint8Array.of(1), head, bytes.subarray(piece * 16384, (piece + 1) * 16384)));
    }
    await until(() => over(events));
    assertEquals(events.of("metadata").map(([, received]) => received), [bytes]);
    link.close();
  }
});

test("fetchMetadata() fails when nothing states the size", async () => {
  const { raw, link, events } = await againstRaw();
  raw.send(frame(20, Uint8Array.of(0), ascii("d1:md11:ut_metadatai4eee")));
  link.fetchMetadata();
  await quiet();
  raw.send(frame(20, Uint8Array.of(1), ascii("d8:msg_typei1e5:piecei0eexx")));
  await until(() => over(events));
  assert(hasCode(events.of("metadataFailed")[0]![1], "unavailable"));
});

test("setMetadata() serves no requests beyond its end and no peers that do not read", async () => {
  const { bytes, infohash } = await info(20_000);
  const { raw, link } = await againstRaw({ link: { infohash }, shake: false });
  raw.send([19, ...ascii("BitTorrent protocol"), 0, 0, 0, 0, 0, 16, 0, 4, ...infohash, ...new Array(20).fill(1)]);
  raw.send(frame(20, Uint8Array.of(0), ascii("d1:md11:ut_metadatai4eee")));
  await quiet();
  link.setMetadata(bytes);
  await quiet();
  raw.received = [];
  raw.send(frame(20, Uint8Array.of(1), ascii("d8:msg_typei0e5:piecei2ee")));
  await quiet();
  assertEquals(raw.received, frame(20, Uint8Array.of(4), ascii("d8:msg_typei2e5:piecei2ee")));
  raw.connection.other.stuck = true;
  for (let i = 0; i < 1000; i++) raw.send(frame(20, Uint8Array.of(1), ascii("d8:msg_typei0e5:piecei0ee")));
  await quiet();
  assert(link.bufferedBytes < 600_000, String(link.bufferedBytes));
});

test("sendPeers() sends IPv4 and IPv6 peers", async () => {
  const { client, atServer } = await joined();
  const added = [
    { host: "203.0.113.7", port: 6881 },
    { host: "2001:db8::17", port: 51413 },
    { host: "::ffff:198.51.100.2", port: 80 },
    { host: "not an address", port: 1 },
    { host: "203.0.113.9", port: 0 },
  ];
  client.sendPeers(added, [{ host: "198.51.100.1", port: 1 }]);
  await quiet();
  assertEquals(atServer.of("peers"), [[
    "peers",
    [{ host: "203.0.113.7", port: 6881 }, { host: "198.51.100.2", port: 80 }, { host: "2001:db8::17", port: 51413 }],
    [{ host: "198.51.100.1", port: 1 }],
  ]]);
});

test("ut_pex is limited to 50 peers per message and one message per minute", async () => {
  const { raw, events, clock } = await againstRaw();
  const many = new Uint8Array(6 * 200 + 3).fill(9);
  for (let i = 0; i < 200; i++) many[6 * i + 3] = i;
  const message = frame(
    20,
    Uint8Array.of(2),
    bencode.encode({ added: many, dropped: many, added6: "x", "added.f": 3 }),
  );
  raw.send(message, message);
  await quiet();
  assertEquals(events.of("peers").length, 1);
  assertEquals((events.of("peers")[0]![1] as unknown[]).length, 50);
  clock.advance(60_000);
  raw.send(message);
  await quiet();
  assertEquals(events.of("peers").length, 2);
  assertEquals(events.of("close"), []);
});

test("with pex false a link neither offers nor reads nor sends ut_pex", async () => {
  const { client, server, atClient, atServer } = await joined({ client: { pex: false } });
  client.sendPeers([{ host: "203.0.113.7", port: 6881 }], []);
  server.sendPeers([{ host: "203.0.113.7", port: 6881 }], []);
  await quiet();
  assertEquals((atServer.of("extended")[0]![1] as { extensions: string[] }).extensions, [
    "lt_donthave",
    "ut_metadata",
  ]);
  assertEquals([atClient.of("peers"), atServer.of("peers")], [[], []]);
});

/** An extended message (BEP 10) of this number. */
const extended = (id: number, ...body: (number | Uint8Array)[]) => frame(20, new Uint8Array([id]), ...body);

test("dontHave() reports a lost piece to the far end (BEP 54)", async () => {
  const { client, server, atServer, atClient } = await joined();
  for (const link of [client, server]) link.setPieceCount(70_000);
  client.dontHave(0);
  client.dontHave(69_999);
  server.dontHave(7);
  await quiet();
  assertEquals(atServer.of("dontHave"), [["dontHave", 0], ["dontHave", 69_999]]);
  assertEquals(atClient.of("dontHave"), [["dontHave", 7]]);
});

test("dontHave() sends nothing to a peer without lt_donthave, and four bytes under its id to one with it", async () => {
  for (const offers of [false, true]) {
    const { link, raw } = await againstRaw();
    // It waits until the far end has announced its extensions.
    link.dontHave(3);
    await quiet();
    assertEquals([...raw.received], []);
    raw.send(extended(0, ascii(offers ? "d1:md11:lt_donthavei9eee" : "d1:mdee")));
    await quiet();
    link.dontHave(0x01020304);
    await quiet();
    assertEquals([...raw.received], offers ? [...extended(9, 3), ...extended(9, 0x01020304)] : []);
  }
});

test("lt_donthave of a piece beyond the last is ignored, and so is one of another size", async () => {
  const { link, events, raw } = await againstRaw({ shake: false });
  raw.send(rawHandshake(true));
  await quiet();
  // Our id for it is in our own handshake: a length, 20, 0, and a dictionary.
  const told = String.fromCharCode(...raw.received);
  const id = Number(/11:lt_donthavei(\d+)e/.exec(told)![1]);
  link.setPieceCount(10);
  raw.send(extended(id, new Uint8Array([0, 0, 9])));
  raw.send(extended(id, new Uint8Array(1), 9));
  raw.send(extended(id, 10));
  raw.send(extended(id, 9));
  await quiet();
  assertEquals(events.of("dontHave"), [["dontHave", 9]]);
  assertEquals(events.of("close"), []);
});
