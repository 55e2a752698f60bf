import { test } from "node:test";
import { createDiffieHellman } from "node:crypto";
import Library from "bittorrent-protocol";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { acceptPeer, connectPeer, createPeerId, encryptionRefused } from "../../src/wire/mod.ts";
import { MseKeyExchange } from "../../src/wire/mse-key-exchange.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { againstRaw, frame, INFOHASH, INFOHASH_HEX, joined, rawHandshake, Recorder } from "./support/links.ts";
import { connectionPair, type MemoryConnection, quiet, RawPeer, until } from "./support/memory-connection.ts";

/** The unmodified library over one end of a pair. `encryption` 2 accepts only RC4. */
// deno-lint-ignore no-explicit-any
function libraryPeer(connection: MemoryConnection, incoming: boolean, encryption: 0 | 1 | 2): any {
  const wire = new Library(incoming ? "tcpIncoming" : "tcpOutgoing", encryption);
  wire.on("data", (bytes: Uint8Array) => connection.write(new Uint8Array(bytes)));
  connection.open({
    data: (chunk) => wire.write(new Uint8Array(chunk)),
    end: () => {},
    drain: () => {},
    close: () => wire.destroy(),
  });
  return wire;
}

function accept(connection: MemoryConnection, at: Recorder, clock = new FakeClock()): Error[] {
  const failures: Error[] = [];
  acceptPeer(connection, {
    clock,
    candidates: () => ["11".repeat(20), INFOHASH_HEX],
    lookup: (infohashHex) =>
      infohashHex !== INFOHASH_HEX ? null : {
        infohash: INFOHASH,
        peerId: createPeerId(),
        attach: (link) => {
          at.link = link;
          return at;
        },
      },
    failed: (error) => failures.push(error),
  });
  return failures;
}

for (const cut of [0, 1]) {
  for (const encryption of [0, 1, 2] as const) {
    test(`acceptPeer() serves the unmodified library, encryption ${encryption}, cut ${cut}`, async () => {
      const [theirs, ours] = connectionPair(cut);
      const at = new Recorder();
      accept(ours, at);
      const wire = libraryPeer(theirs, false, encryption);
      const block = Uint8Array.from({ length: 16384 }, (_, i) => i * 7);
      let got: Uint8Array | null = null;
      at.onEvent = ([name, ...args]) => {
        if (name === "ready") at.link!.unchoke();
        if (name === "request") at.link!.piece(args[0] as number, args[1] as number, block);
      };
      const shake = () => wire.handshake(INFOHASH_HEX, "62".repeat(20), { fast: true });
      wire.on("crypto-handshake", shake);
      if (encryption === 0) shake();
      else wire.startEncryption(INFOHASH_HEX);
      wire.on("unchoke", () => wire.request(4, 0, 16384, (_: unknown, bytes: Uint8Array) => got = bytes));
      await until(() => got !== null);
      assertEquals(got && new Uint8Array(got), block);
      assertEquals((at.of("ready")[0]![1] as { encrypted: boolean }).encrypted, encryption === 2);
      wire.piece(4, 0, block);
      wire.have(9);
      await quiet();
      assertEquals(at.blocks, [block]);
      assertEquals(at.events.at(-1), ["have", 9]);
    });

    test(`connectPeer() talks to the unmodified library, encryption ${encryption}, cut ${cut}`, async () => {
      const [ours, theirs] = connectionPair(cut);
      const wire = libraryPeer(theirs, true, encryption);
      wire.on("crypto-infohash", () => wire.setInfoHash(INFOHASH_HEX));
      wire.on("handshake", () => {
        wire.handshake(INFOHASH_HEX, "62".repeat(20), { fast: true });
        wire.unchoke();
      });
      const block = Uint8Array.from({ length: 16384 }, (_, i) => i * 5);
      wire.on(
        "request",
        (_p: number, _o: number, _l: number, done: (e: null, b: Uint8Array) => void) => done(null, block),
      );
      const at = new Recorder();
      const link = connectPeer(ours, {
        clock: new FakeClock(),
        infohash: INFOHASH,
        peerId: createPeerId(),
        handlers: at,
        encryption: encryption === 0 ? "accept" : "prefer",
      });
      at.onEvent = ([name]) => {
        if (name === "unchoke") {
          link.request(1, 0, 16384);
          link.request(1, 16384, 16384);
        }
      };
      await until(() => at.of("block").length === 2);
      assertEquals(at.blocks, [block, block]);
      assertEquals((at.of("ready")[0]![1] as { encrypted: boolean }).encrypted, encryption === 2);
    });
  }
}

test("connectPeer() passes on bytes that follow the handshake in the same chunk", async () => {
  const { raw, events } = await againstRaw({ shake: false });
  raw.send(rawHandshake(true), frame(14), frame(1), frame(4, 3));
  await quiet();
  assertEquals(events.names, ["ready", "haveAll", "unchoke", "have"]);
});

test("connectPeer() times out when the handshake does not come", async () => {
  const { clock, events } = await againstRaw({ shake: false });
  clock.advance(9_999);
  await quiet();
  assertEquals(events.events, []);
  clock.advance(1);
  await quiet();
  assert(hasCode(events.closeError, "timeout"));
  assertEquals(encryptionRefused(events.closeError), false);
  assertEquals(clock.pendingTimers, 0);
});

test("encryptionRefused() is true when an encrypted attempt ends in silence or a hang-up", async () => {
  const silent = await againstRaw({ shake: false, link: { encryption: "prefer" } });
  silent.clock.advance(4_000);
  const hangUp = await againstRaw({ shake: false, link: { encryption: "prefer" } });
  hangUp.raw.connection.end();
  await quiet();
  assert(hasCode(silent.events.closeError, "timeout") && encryptionRefused(silent.events.closeError));
  assert(hasCode(hangUp.events.closeError, "connection_failed") && encryptionRefused(hangUp.events.closeError));
});

test("connectPeer() reports a hang-up during the handshake", async () => {
  const { raw, events } = await againstRaw({ shake: false });
  raw.send(rawHandshake(true).slice(0, 30));
  raw.connection.end();
  await quiet();
  assert(hasCode(events.closeError, "connection_failed"));
  assertEquals(events.names, ["close"]);
});

test("connectPeer() refuses another torrent, garbage and a connection to itself", async () => {
  const other = await againstRaw({ shake: false });
  other.raw.send(rawHandshake(true, new Uint8Array(20)));
  const garbage = await againstRaw({ shake: false });
  garbage.raw.send([...new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n")]);
  const self = await againstRaw({ shake: false, link: { peerId: new Uint8Array(20).fill(0x62) } });
  self.raw.send(rawHandshake(true));
  await quiet();
  assert(hasCode(other.events.closeError, "protocol_violation"));
  assert(hasCode(garbage.events.closeError, "protocol_violation"));
  assert(hasCode(self.events.closeError, "conflict"));
});

test("connectPeer() closes when its signal fires", async () => {
  const controller = new AbortController();
  const { events } = await againstRaw({ link: { signal: controller.signal } });
  controller.abort();
  await quiet();
  assert(hasCode(events.closeError, "aborted"));
});

test("acceptPeer() hangs up on unknown torrents, plain and encrypted", async () => {
  const [plainClient, plainServer] = connectionPair();
  const plain = accept(plainServer, new Recorder());
  new RawPeer(plainClient).send(rawHandshake(true, new Uint8Array(20)));
  const [client, server] = connectionPair();
  const encrypted = accept(server, new Recorder());
  const at = new Recorder();
  connectPeer(client, {
    clock: new FakeClock(),
    infohash: new Uint8Array(20).fill(3),
    peerId: createPeerId(),
    handlers: at,
    encryption: "prefer",
  });
  await until(() => encrypted.length > 0 && plain.length > 0 && at.of("close").length > 0);
  assert(hasCode(plain[0], "connection_failed"));
  assert(hasCode(encrypted[0], "connection_failed"));
  assertEquals([plain.length, encrypted.length, at.of("close").length], [1, 1, 1]);
});

test("acceptPeer() with encryption off refuses an encrypted handshake", async () => {
  const clock = new FakeClock();
  const [client, server] = connectionPair();
  const failures: Error[] = [];
  acceptPeer(server, {
    clock,
    encryption: "off",
    candidates: () => [INFOHASH_HEX],
    lookup: () => null,
    failed: (error) => failures.push(error),
  });
  new RawPeer(client).send(new Uint8Array(200).fill(0x55));
  await quiet();
  assert(hasCode(failures[0], "protocol_violation"));
  assertEquals(clock.pendingTimers, 0);
});

test("acceptPeer() bounds an endless encrypted handshake and a degenerate key", async () => {
  const [client, server] = connectionPair();
  const endless = accept(server, new Recorder());
  const raw = new RawPeer(client);
  for (let i = 0; i < 40; i++) raw.send(new Uint8Array(16384).fill(0x55));
  const [weakClient, weakServer] = connectionPair();
  const weak = accept(weakServer, new Recorder());
  new RawPeer(weakClient).send(new Uint8Array(96));
  await quiet();
  assert(hasCode(endless[0], "protocol_violation"));
  assert(hasCode(weak[0], "protocol_violation"));
});

test("two links agree on an encrypted handshake and continue in plaintext", async () => {
  const { atClient, atServer } = await joined({ client: { encryption: "prefer" }, cut: 7 });
  for (const at of [atClient, atServer]) {
    assertEquals((at.of("ready")[0]![1] as { encrypted: boolean }).encrypted, false);
  }
});

test("connectPeer() and acceptPeer() encrypt all of a link when either requires it, and refuse peers that do not", async () => {
  for (const sides of [{ client: "require", server: "accept" }, { client: "prefer", server: "require" }] as const) {
    const { atClient, atServer } = await joined({
      client: { encryption: sides.client },
      server: { encryption: sides.server },
      cut: 7,
    });
    for (const at of [atClient, atServer]) {
      assertEquals((at.of("ready")[0]![1] as { encrypted: boolean }).encrypted, true);
    }
  }
  const [plain, ours] = connectionPair(0);
  const failures: unknown[] = [];
  acceptPeer(ours, {
    clock: new FakeClock(),
    encryption: "require",
    candidates: () => [INFOHASH_HEX],
    lookup: () => null,
    failed: (error) => failures.push(error),
  });
  connectPeer(plain, {
    clock: new FakeClock(),
    infohash: INFOHASH,
    peerId: createPeerId(),
    handlers: new Recorder(),
  });
  await until(() => failures.length > 0);
});

test("MseKeyExchange computes the same secret as node's Diffie-Hellman", () => {
  const prime = "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404dd" +
    "ef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a36210000000000090563";
  const theirs = createDiffieHellman(prime, "hex", 2);
  const raw = theirs.generateKeys();
  const padded = new Uint8Array(96);
  padded.set(raw, 96 - raw.length);
  const ours = new MseKeyExchange();
  const secret = ours.computeSecret(padded);
  assertEquals(secret.length, 96);
  assertEquals([...secret], [...theirs.computeSecret(ours.generateKeys())]);
  for (const weak of [new Uint8Array(96), new Uint8Array(96).fill(255)]) {
    assertThrows(() => ours.computeSecret(weak), MillraceError, "degenerate");
  }
});

test("connectPeer() sends pieces, interest and requests together with our plaintext handshake", async () => {
  const { link, raw } = await againstRaw({ shake: false });
  link.bitfield(Uint8Array.of(0x80));
  link.interested();
  link.request(1, 16384, 16384);
  link.have(3);
  await quiet();
  assertEquals(raw.received, [...frame(5, Uint8Array.of(0x80)), ...frame(2), ...frame(6, 1, 16384, 16384)]);
});

test("connectPeer() sends everything only after an encrypted handshake", async () => {
  const { link, raw } = await againstRaw({ shake: false, link: { encryption: "prefer" } });
  link.interested();
  link.request(1, 16384, 16384);
  await quiet();
  assertEquals(raw.received, []);
});
