import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { HashMessageId } from "../../src/wire/hash-messages.ts";
import { againstRaw, frame, INFOHASH, joined, rawHandshake, Recorder } from "./support/links.ts";
import { connectionPair, quiet, RawPeer, until } from "./support/memory-connection.ts";
import { connectPeer, createPeerId } from "../../src/wire/mod.ts";
import { FakeClock } from "../support/fake-clock.ts";

const REQUEST = { root: new Uint8Array(32).fill(9), level: 2, index: 64, count: 64, proofLevels: 5 };
const HEAD = [...REQUEST.root, 0, 0, 0, 2, 0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0, 5];

for (const encryption of ["off", "prefer"] as const) {
  test(`sendHash() carries requests, hashes and rejects with encryption "${encryption}"`, async () => {
    const { client, atServer } = await joined({ client: { encryption }, server: { encryption: "accept" }, cut: 7 });
    const hashes = Uint8Array.from({ length: 64 }, (_, i) => i);
    client.sendHash(HashMessageId.request, REQUEST);
    client.sendHash(HashMessageId.hashes, REQUEST, hashes);
    client.sendHash(HashMessageId.reject, REQUEST);
    client.unchoke();
    await until(() => atServer.of("unchoke").length > 0);
    const expected = [["hashRequest", REQUEST], ["hashes", REQUEST, [...hashes]], ["hashReject", REQUEST]];
    assertEquals(atServer.events.filter(([name]) => name.startsWith("hash")), expected as never);
  });
}

test("sendHash() writes what BEP 52 says", async () => {
  const { link, raw } = await againstRaw();
  link.sendHash(HashMessageId.request, REQUEST);
  link.sendHash(HashMessageId.hashes, REQUEST, new Uint8Array(32).fill(3));
  await quiet();
  const sent = [...frame(21, Uint8Array.from(HEAD)), ...frame(22, Uint8Array.from(HEAD), new Uint8Array(32).fill(3))];
  assertEquals([...raw.received], sent);
});

test("connectPeer() says in its handshake that it knows version 2, for a torrent that has it", async () => {
  for (const v2 of [true, false]) {
    const [ours, theirs] = connectionPair(0);
    const raw = new RawPeer(theirs);
    const handlers = new Recorder();
    connectPeer(ours, { clock: new FakeClock(), infohash: INFOHASH, peerId: createPeerId(), handlers, v2 });
    raw.send(rawHandshake(true));
    await quiet(2);
    assertEquals(raw.received.slice(20, 28), [0, 0, 0, 0, 0, 0x10, 0, v2 ? 0x14 : 0x04] as never);
  }
});
