import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { ExtendedHandshake, LiveOffer } from "../../src/wire/types.ts";
import { againstRaw, ascii, frame, joined, seeded, uint32 } from "./support/links.ts";
import { quiet } from "./support/memory-connection.ts";

const VIEWER: LiveOffer = { role: "viewer", upBytesPerS: 250_000 };
const SOURCE: LiveOffer = { role: "source", upBytesPerS: null };
const LAST = 2 ** 31 - 1;

/** An extended handshake that offers `live1` under the id 7 and has this `live` field. */
const handshake = (live: string) => frame(20, Uint8Array.of(0), ascii(`d4:live${live}1:md5:live1i7eee`));

async function liveLinks() {
  const pair = await joined({ client: { live: VIEWER }, server: { live: SOURCE } });
  return pair;
}

test("connectPeer() with live exchanges role and uplink both ways", async () => {
  const { atClient, atServer } = await liveLinks();
  assertEquals((atServer.of("extended")[0]![1] as ExtendedHandshake).live, VIEWER);
  assertEquals((atClient.of("extended")[0]![1] as ExtendedHandshake).live, SOURCE);
});

test("connectPeer() with live sends the wall clock in whole seconds, and ignores one that is not a number", async () => {
  const { atClient } = await joined({
    client: { live: VIEWER },
    server: { live: { ...SOURCE, clockMs: 1_800_000_000_999 } },
  });
  assertEquals((atClient.of("extended")[0]![1] as ExtendedHandshake).live, { ...SOURCE, clockMs: 1_800_000_000_000 });
  for (const told of ["i-1e", "1:x", "i281474976711e"]) {
    const { raw, events } = await againstRaw({ link: { live: VIEWER } });
    raw.send(handshake(`d4:role6:source1:t${told}1:vi1ee`));
    await quiet();
    assertEquals((events.of("extended")[0]![1] as ExtendedHandshake).live, SOURCE);
  }
});

test("connectPeer() with live says whether others can connect, and ignores what is neither yes nor no", async () => {
  for (const isOpen of [true, false]) {
    const { atClient } = await joined({ client: { live: VIEWER }, server: { live: { ...SOURCE, isOpen } } });
    assertEquals((atClient.of("extended")[0]![1] as ExtendedHandshake).live, { ...SOURCE, isOpen });
  }
  for (const told of ["i2e", "i-1e", "1:x"]) {
    const { raw, events } = await againstRaw({ link: { live: VIEWER } });
    raw.send(handshake(`d1:r${told}4:role6:source1:vi1ee`));
    await quiet();
    assertEquals((events.of("extended")[0]![1] as ExtendedHandshake).live, SOURCE);
  }
});

test("connectPeer() with live says whether BUNDLEs are understood, and takes anything but 1 for no", async () => {
  const offer: LiveOffer = { ...SOURCE, takesBundles: true };
  const { atClient, atServer } = await joined({ client: { live: VIEWER }, server: { live: offer } });
  assertEquals((atClient.of("extended")[0]![1] as ExtendedHandshake).live, offer);
  assertEquals((atServer.of("extended")[0]![1] as ExtendedHandshake).live, VIEWER);
  for (const told of ["i0e", "i2e", "1:1"]) {
    const { raw, events } = await againstRaw({ link: { live: VIEWER } });
    raw.send(handshake(`d1:b${told}4:role6:source1:vi1ee`));
    await quiet();
    assertEquals((events.of("extended")[0]![1] as ExtendedHandshake).live, SOURCE);
  }
});

test("connectPeer() registers live1 only for broadcasts", async () => {
  const { client, atServer } = await joined({ server: { live: SOURCE } });
  const { extensions, live } = atServer.of("extended")[0]![1] as ExtendedHandshake;
  assertEquals([extensions.includes("live1"), live], [false, null]);
  client.sendLive(Uint8Array.of(1));
  client.push(1, 0, new Uint8Array(5));
  await quiet();
  assertEquals(atServer.names, ["ready", "extended"]);
});

test("PeerLink carries live1 messages in order, encrypted or not", async () => {
  for (const encryption of ["accept", "prefer"] as const) {
    const pair = await joined({ client: { live: VIEWER, encryption }, server: { live: SOURCE } });
    for (let i = 0; i < 3; i++) pair.server.sendLive(Uint8Array.of(4, i));
    await quiet(8);
    assertEquals(pair.atClient.of("live").map(([, bytes]) => bytes), [0, 1, 2].map((i) => Uint8Array.of(4, i)));
  }
});

test("PeerLink pushes unrequested blocks with 31-bit numbers", async () => {
  const { server, atClient } = await liveLinks();
  server.push(LAST, 16384, new Uint8Array(100).fill(7));
  await quiet();
  assertEquals(atClient.of("block"), [["block", LAST, 16384, 100, true]]);
  assertEquals(atClient.blocks[0], new Uint8Array(100).fill(7));
});

test("PeerLink accepts requests and cancels with 31-bit numbers, and answers them", async () => {
  const { client, server, atClient, atServer } = await liveLinks();
  server.unchoke();
  await quiet();
  client.request(LAST, 0, 16384);
  client.request(LAST, 16384, 16384);
  client.cancel(LAST, 16384, 16384);
  await quiet();
  assertEquals(atServer.of("request").length, 2);
  assertEquals(atServer.of("cancel"), [["cancel", LAST, 16384, 16384]]);
  server.push(LAST, 0, new Uint8Array(16384));
  await quiet();
  assertEquals(atClient.of("block").length, 1);
});

test("PeerLink ignores numbers above 31 bits and ends on blocks with such, even in a live swarm", async () => {
  const { raw, events } = await againstRaw({ link: { live: VIEWER } });
  raw.send(frame(6, 2 ** 31, 0, 16384), frame(4, 2 ** 31));
  await quiet();
  assertEquals(events.names, ["ready"]);
  raw.send(frame(7, 2 ** 31, 0, new Uint8Array(9)));
  await quiet();
  assertEquals((events.closeError as { code?: string } | null)?.code, "protocol_violation");
});

test("PeerLink rejects a peer's requests above the limit of its queue", async () => {
  const { client, server, atClient, atServer } = await joined({
    client: { live: VIEWER },
    server: { live: SOURCE, requestQueueLimit: 64 },
  });
  server.unchoke();
  await quiet();
  for (let i = 0; i < 500; i++) client.request(i, 0, 16384);
  await quiet();
  assertEquals([atServer.of("request").length, atClient.of("reject").length], [64, 436]);
});

test("FrameReader rejects a giant frame at its length prefix, before the id arrives", async () => {
  const { raw, events } = await againstRaw({ link: { live: VIEWER } });
  raw.send(uint32((1 << 20) + 1));
  await quiet();
  assertEquals((events.closeError as { code?: string } | null)?.code, "protocol_violation");
});

test("readLiveOffer() accepts only a live field of version 1", async () => {
  const cases: [string, LiveOffer | null][] = [
    ["d4:role6:source2:upi5e1:vi1ee", { role: "source", upBytesPerS: 5 }],
    ["d1:vi1ee", { role: "viewer", upBytesPerS: null }],
    ["d4:role6:master2:upi-5e1:vi1ee", { role: "viewer", upBytesPerS: null }],
    ["d1:vi2ee", null],
    ["i1e", null],
    ["le", null],
  ];
  for (const [live, expected] of cases) {
    const { raw, events } = await againstRaw({ link: { live: VIEWER } });
    raw.send(handshake(live));
    await quiet();
    assertEquals((events.of("extended")[0]![1] as ExtendedHandshake).live, expected, live);
  }
});

test("PeerLink survives random bytes in live1 messages and fields", async () => {
  const random = seeded(5);
  for (let round = 0; round < 300; round++) {
    const { raw, events } = await againstRaw({ link: { live: VIEWER } });
    raw.send(handshake("d1:vi1ee"));
    const bytes = new Uint8Array(1 + Math.floor(random() * 60)).map(() => Math.floor(random() * 256));
    bytes[0] = Math.floor(random() * 4);
    raw.send(frame(20, bytes));
    await quiet(1);
    const error = events.closeError as { code?: string } | null | undefined;
    if (error != null) assertEquals(error.code, "protocol_violation");
  }
});
