import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { acceptPeer, createPeerId } from "../../src/wire/mod.ts";
import { FakeClock } from "../support/fake-clock.ts";
import {
  againstRaw,
  ascii,
  frame,
  INFOHASH,
  INFOHASH_HEX,
  rawHandshake,
  Recorder,
  seeded,
  uint32,
} from "./support/links.ts";
import { connectionPair, quiet, RawPeer, until } from "./support/memory-connection.ts";

const VIOLATIONS: Record<string, { fast?: boolean; count?: number; bytes: number[] }> = {
  "a length prefix of 1 GiB": { bytes: [...uint32(1 << 30), 7] },
  "a length prefix of 4 GiB - 1": { bytes: [255, 255, 255, 255, 20] },
  "a piece larger than 128 KiB": { bytes: [...uint32(10 + 131072), 7] },
  "a piece without payload": { bytes: frame(7, 1, 0) },
  "a piece beyond the last": { count: 8, bytes: frame(7, 8, 0, new Uint8Array(4)) },
  "a piece beyond its end": { count: 8, bytes: frame(7, 7, 900, new Uint8Array(4)) },
  "an extended message over 64 KiB": { bytes: [...uint32(65537), 20] },
  "an extended message without an id": { bytes: [...uint32(1), 20] },
  "an unknown message over 1 MiB": { bytes: [...uint32((1 << 20) + 1), 99] },
  "a bitfield of over 400 000 bits": { bytes: [...uint32(50002), 5] },
  "a short have": { bytes: frame(4, Uint8Array.of(1, 2)) },
  "a long choke": { bytes: frame(0, Uint8Array.of(1)) },
  "reject without the fast extension": { fast: false, bytes: frame(16, 0, 0, 1) },
  "have all without the fast extension": { fast: false, bytes: frame(14) },
  "have none without the fast extension": { fast: false, bytes: frame(15) },
  "suggest without the fast extension": { fast: false, bytes: frame(13, 0) },
  "allowed fast without the fast extension": { fast: false, bytes: frame(17, 0) },
  "a short hash request": { bytes: frame(21, new Uint8Array(47)) },
  "a long hash reject": { bytes: frame(23, new Uint8Array(49)) },
  "hashes that are cut": { bytes: frame(22, new Uint8Array(48 + 33)) },
  "hashes of 64 KiB": { bytes: [...uint32(49 + 65_536), 22] },
  "ut_metadata garbage": { bytes: frame(20, Uint8Array.of(1), ascii("d8:msg_typei0eel-3:")) },
  "ut_metadata with a negative length": { bytes: frame(20, Uint8Array.of(1), ascii("d5:piecel-3:ee")) },
  "ut_pex garbage": { bytes: frame(20, Uint8Array.of(2), ascii("l-3:e")) },
};

/** What libtorrent reads without complaint, or would at worst end the connection for. */
const TOLERATED: Record<
  string,
  { fast?: boolean; count?: number; bytes: number[]; events?: unknown[][]; sent?: number[] }
> = {
  "a bitfield of the wrong length": { count: 8, bytes: frame(5, new Uint8Array(2)), events: [["bitfield", [0, 0]]] },
  "a bitfield with spare bits": { count: 7, bytes: frame(5, Uint8Array.of(0xff)), events: [["bitfield", [0xff]]] },
  "have beyond the last piece": { count: 8, bytes: frame(4, 8) },
  "have beyond any piece": { bytes: frame(4, 400_000) },
  "have of a negative piece": { bytes: frame(4, 0xffffffff) },
  "a request of nothing": { bytes: frame(6, 0, 0, 0), sent: frame(16, 0, 0, 0) },
  "a request over 128 KiB": { bytes: frame(6, 0, 0, 131073), sent: frame(16, 0, 0, 131073) },
  "a request beyond its piece": { count: 8, bytes: frame(6, 0, 1000, 25), sent: frame(16, 0, 1000, 25) },
  "a request beyond the last byte": { count: 8, bytes: frame(6, 7, 0, 901), sent: frame(16, 7, 0, 901) },
  "a request whose end overflows": { count: 8, bytes: frame(6, 0, 0xffffffff, 2), sent: frame(16, 0, 0xffffffff, 2) },
  "an extended handshake that is not a dictionary": { bytes: frame(20, Uint8Array.of(0), ascii("i1e")) },
  "an extended handshake with deep nesting": { bytes: frame(20, Uint8Array.of(0), ascii("d1:a" + "l".repeat(5000))) },
  "an extended handshake with a negative length": { bytes: frame(20, Uint8Array.of(0), ascii("d1:al-3:ee")) },
  "an extended handshake that names __proto__": { bytes: frame(20, Uint8Array.of(0), ascii("d1:md9:__proto__i3eee")) },
  "a bitfield that is too short": { count: 17, bytes: frame(5, Uint8Array.of(0xf0)), events: [["bitfield", [0xf0]]] },
  "cancel, reject, allowed fast and suggest of pieces beyond the last": {
    count: 8,
    bytes: [...frame(8, 8, 0, 1), ...frame(16, 8, 0, 1), ...frame(17, 8), ...frame(13, 0xffffffff)],
  },
  "a giant extended handshake": { bytes: frame(20, Uint8Array.of(0), ascii("d1:v9000:" + "v".repeat(9000) + "e")) },
};

for (const [name, { fast = true, count, bytes, events: expected = [], sent = [] }] of Object.entries(TOLERATED)) {
  test(`${name} costs a peer nothing`, async () => {
    const { link, raw, events } = await againstRaw({ fast });
    if (count !== undefined) {
      link.setPieceCount(count, { pieceLengthBytes: 1024, totalBytes: 1024 * (count - 1) + 900 });
    }
    link.unchoke();
    await quiet();
    const before = raw.received.length;
    raw.send(bytes, frame(1));
    await until(() => events.of("unchoke").length > 0);
    assertEquals(events.events.filter(([event]) => event !== "ready"), [...expected, ["unchoke"]]);
    assertEquals([...raw.received.slice(before)], sent);
  });
}

for (const [name, { fast = true, count, bytes }] of Object.entries(VIOLATIONS)) {
  test(`${name} is a protocol violation`, async () => {
    const { link, raw, events } = await againstRaw({ fast });
    if (count !== undefined) link.setPieceCount(count, { pieceLengthBytes: 1024, totalBytes: 1024 * 7 + 900 });
    link.unchoke();
    raw.send(bytes, frame(1));
    await quiet();
    assert(hasCode(events.closeError, "protocol_violation"), String(events.closeError));
    assertEquals(events.of("close").length, 1);
    assertEquals(events.of("unchoke"), []);
    assert(raw.closed);
  });
}

test("setPieceCount() forgives earlier messages that do not fit", async () => {
  for (const early of [frame(4, 100), frame(5, new Uint8Array(20))]) {
    const { link, raw, events } = await againstRaw();
    raw.send(early);
    await quiet();
    link.setPieceCount(100);
    await quiet();
    assertEquals(events.of("close"), []);
  }
});

test("odd but harmless messages are accepted", async () => {
  const { raw, link, events } = await againstRaw();
  link.setPieceCount(9);
  raw.send(
    [0, 0, 0, 0],
    frame(13, 3),
    frame(21, new Uint8Array(48)),
    frame(99),
    frame(20, Uint8Array.of(77), ascii("whatever")),
    frame(20, Uint8Array.of(0), ascii("d1:mde4:reqqi-5e1:v3:a\u0001be")),
    frame(20, Uint8Array.of(0), ascii("d1:m3:abc13:metadata_sizei99999999999ee")),
    frame(20, Uint8Array.of(0), ascii("d1:md6:ut_pexd8:toStringi5eee1:pi70000ee")),
    frame(17, 2),
    frame(9, Uint8Array.of(0, 0)),
    frame(1),
  );
  await quiet();
  assertEquals(events.names, ["ready", "hashRequest", "extended", "extended", "extended", "allowedFast", "unchoke"]);
  const none = { metadataBytes: null, listenPort: null, yourIp: null, live: null };
  const info = { ...none, requestQueueLimit: 250, uploadOnly: false };
  assertEquals(events.of("extended")[0]![1], { ...info, client: "ab", extensions: [] });
  assertEquals(events.of("extended")[2]![1], { ...info, client: null, extensions: [] });
});

test("a repeated bitfield, which aria2 sends instead of many haves, is accepted", async () => {
  const { raw, link, events } = await againstRaw();
  link.setPieceCount(8);
  raw.send(frame(15), frame(5, Uint8Array.of(1)), frame(4, 1), frame(5, Uint8Array.of(0x41)));
  raw.send(frame(15), frame(14), frame(14), frame(1));
  await quiet();
  assertEquals(events.names, ["ready", "haveNone", "bitfield", "have", "bitfield", "haveAll", "unchoke"]);
  assertEquals(events.of("bitfield"), [["bitfield", [1]], ["bitfield", [0x41]]]);
});

test("requests beyond the limit are rejected with the fast extension, and dropped without it", async () => {
  for (const fast of [true, false]) {
    const { raw, link, events } = await againstRaw({ fast, link: { requestQueueLimit: 100 } });
    link.unchoke();
    for (let i = 0; i < 300; i++) raw.send(frame(6, i, 0, 16384));
    raw.send(frame(6, 0, 0, 16384));
    await quiet();
    assertEquals(events.of("request").length, 100);
    assertEquals(raw.received.length, 5 + (fast ? 200 * 17 : 0));
    assertEquals(events.of("close"), []);
  }
});

test("requests while we choke are rejected with the fast extension, and dropped without it", async () => {
  for (const fast of [true, false]) {
    const { raw, events } = await againstRaw({ fast });
    for (let i = 0; i < 300; i++) raw.send(frame(6, i, 0, 16384));
    await quiet();
    assertEquals(events.names, ["ready"]);
    assertEquals(raw.received.length, fast ? 300 * 17 : 0);
  }
});

test("a peer that floods and does not read is dropped", async () => {
  const { raw, link, events } = await againstRaw();
  // A torrent this large allows that many messages.
  link.setPieceCount(400_000);
  raw.connection.other.stuck = true;
  const flood = Array.from({ length: 4000 }, (_, i) => frame(6, i, 0, 16384)).flat();
  for (let i = 0; i < 70; i++) raw.send(flood);
  // Reading takes many turns.
  for (let i = 0; i < 50 && events.closeError === undefined; i++) await until(() => events.closeError !== undefined);
  assert(hasCode(events.closeError, "connection_failed"));
});

test("messages split at any byte boundary are read the same", async () => {
  const messages = [
    ...frame(5, Uint8Array.of(0xa0)),
    ...frame(1),
    ...[0, 0, 0, 0],
    ...frame(4, 3),
    ...frame(7, 2, 5, Uint8Array.of(1, 2, 3, 4, 5, 6, 7)),
    ...frame(16, 1, 2, 3),
    ...frame(33, new Uint8Array(9)),
    ...frame(20, Uint8Array.of(0), ascii("d1:md6:ut_pexi3ee1:v1:xe")),
    ...frame(0),
  ];
  const stream = [...rawHandshake(true), ...messages];
  let expected: unknown = null;
  for (let split = 1; split < stream.length; split++) {
    const { raw, events } = await againstRaw({ shake: false });
    raw.send(stream.slice(0, split));
    await quiet(1);
    raw.send(stream.slice(split));
    await quiet(1);
    const seen = [events.events, events.blocks];
    expected ??= seen;
    assertEquals(events.names.length, 9);
    assertEquals(seen, expected);
  }
});

test("seeded garbage ends the link with a MillraceError or not at all", async () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = seeded(seed);
    const pair = await againstRaw({
      fast: random() < 0.5,
      cut: random() < 0.5 ? 0 : () => 1 + Math.floor(random() * 40),
    });
    pair.link.setPieceCount(64, { pieceLengthBytes: 32768, totalBytes: 64 * 32768 });
    pair.link.unchoke();
    pair.link.fetchMetadata();
    for (let i = 0; i < 40; i++) {
      const id = Math.floor(random() * 22);
      const length = Math.floor(random() ** 4 * 3000);
      const body = Uint8Array.from({ length }, () => random() < 0.3 ? 0 : Math.floor(random() * 256));
      const dictionary = ["d1:m", "d", "l", "i", "3:", "e", "-", "d8:msg_typei1e5:piecei0ee", "13:metadata_sizei99e"];
      const text = Array.from({ length: 6 }, () => dictionary[Math.floor(random() * dictionary.length)]).join("");
      const choice = random();
      if (choice < 0.3) pair.raw.send(body);
      else if (choice < 0.6) pair.raw.send(frame(id, body));
      else if (choice < 0.8) pair.raw.send(frame(20, Uint8Array.of(Math.floor(random() * 4)), ascii(text)));
      else {pair.raw.send(
          frame([4, 6, 8, 16][id & 3]!, Math.floor(random() * 70), Math.floor(random() * 9) * 4096, 16384),
        );}
    }
    await quiet(1);
    const error = pair.events.closeError;
    assert(error === undefined || error === null || error instanceof MillraceError);
    assert(!hasCode(error, "internal"), String(error && error.cause));
    pair.link.close();
    await quiet(1);
    assertEquals(pair.events.of("close").length, 1);
  }
});

test("seeded garbage instead of a handshake ends the attempt once", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seeded(seed);
    const clock = new FakeClock();
    const [client, server] = connectionPair(() => 1 + Math.floor(random() * 200));
    const at = new Recorder();
    const failures: Error[] = [];
    acceptPeer(server, {
      clock,
      candidates: () => [INFOHASH_HEX],
      lookup: () => ({ infohash: INFOHASH, peerId: createPeerId(), attach: () => at }),
      failed: (error) => failures.push(error),
    });
    const raw = new RawPeer(client);
    const opening = random() < 0.5 ? rawHandshake(true) : [];
    for (let i = 0; i < 3; i++) opening[Math.floor(random() * 68)] = Math.floor(random() * 256);
    raw.send([...opening].map((byte) => byte ?? 0));
    raw.send(Uint8Array.from({ length: Math.floor(random() * 1500) }, () => Math.floor(random() * 256)));
    await quiet(2);
    raw.connection.end();
    clock.advance(10_000);
    await quiet(2);
    const errors = [...failures, ...at.of("close").map(([, error]) => error)];
    assertEquals(errors.length, 1);
    assert(errors[0] === null || errors[0] instanceof MillraceError && !hasCode(errors[0], "internal"));
    assertEquals(clock.pendingTimers, 0);
  }
});
