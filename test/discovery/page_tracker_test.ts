import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Announce } from "../../src/discovery/announce.ts";
import { pageAnnouncer, PageSlots, type PageTrackerParts } from "../../src/discovery/page-tracker.ts";
import { MillraceError } from "../../src/errors.ts";
import type { PageConnection, PagePort, SocketAddress, TcpConnection, WebSocketRequest } from "../../src/ports.ts";
import { deferred } from "../../src/bytes/deferred.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { noise } from "../support/random.ts";

const ANNOUNCE: Announce = {
  infohash: noise(20, 1),
  peerId: noise(20, 2),
  port: 1,
  uploadedBytes: 0,
  downloadedBytes: 0,
  leftBytes: 1,
  event: "started",
  numWant: 80,
  key: 1,
  trackerId: null,
};
const text = (bytes: Uint8Array) => String.fromCharCode(...bytes);
const HASH = text(ANNOUNCE.infohash);
const NEVER = new AbortController().signal;

const description = (address: string) =>
  [
    "v=0",
    "o=- 1 2 IN IP4 127.0.0.1",
    "s=-",
    "t=0 0",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    `a=candidate:1 1 udp 1 ${address} 50000 typ host`,
    "a=ice-ufrag:abcd",
    "a=ice-pwd:abcdefghijklmnopqrstuvwx",
    "a=fingerprint:sha-256 AB:CD",
    "a=setup:actpass",
    "",
  ].join("\r\n");

interface Made extends PageConnection {
  readonly theirs: string[];
  isClosed: boolean;
  open(): void;
}

/** A tracker at 203.0.113.1, and browsers that never answer by themselves. */
function setUp(options: Partial<PageTrackerParts> = {}) {
  const clock = new FakeClock();
  const made: Made[] = [];
  const sent: Record<string, never>[] = [];
  const taken: TcpConnection[] = [];
  let request: WebSocketRequest | null = null;
  let opened = 0;
  const make = (theirs: string[]): Made => {
    const { promise, resolve, reject } = deferred<TcpConnection>();
    promise.catch(() => {});
    const connection: Made = {
      sdp: description("198.51.100.1"),
      theirs,
      isClosed: false,
      opened: promise,
      accept: (sdp) => (theirs.push(sdp), Promise.resolve()),
      open: () =>
        resolve({
          open(handlers) {
            this.abort = () => handlers.close();
          },
        } as TcpConnection),
      close: () => {
        connection.isClosed = true;
        reject(new MillraceError("connection_failed", "closed"));
      },
    };
    made.push(connection);
    return connection;
  };
  const pages: PagePort = {
    openWebSocket: (asked) => {
      request = asked;
      opened++;
      return Promise.resolve({
        address: "203.0.113.1",
        send: (message) => void sent.push(JSON.parse(message)),
        close: () => asked.onClose(),
      });
    },
    load: () => Promise.resolve(),
    offer: () => Promise.resolve(make([])),
    answer: (sdp) => Promise.resolve(make([sdp])),
  };
  const announce = pageAnnouncer(
    {
      ...{ clock, pages, slots: new PageSlots() },
      addressesOf: () => Promise.resolve(["203.0.113.1"]),
      allows: ({ host }: SocketAddress) => host !== "192.168.1.1",
      tells: (host) => host !== "192.168.1.2",
      take: (connection) => void taken.push(connection),
      ...options,
    },
    "wss://tracker.test/",
    () => "any",
  )!;
  const say = async (fields: Record<string, unknown>) => {
    request!.onMessage(JSON.stringify({ action: "announce", info_hash: HASH, ...fields }));
    for (let i = 0; i < 5; i++) await clock.advanceAsync(0);
  };
  const ask = async (event: Announce["event"] = "started") => {
    const answer = announce({ ...ANNOUNCE, event }, NEVER, () => {});
    answer.catch(() => {});
    for (let i = 0; i < 5; i++) await clock.advanceAsync(0);
    return { answer };
  };
  return { clock, made, sent, taken, announce, say, ask, hangUp: () => request!.onClose(), opened: () => opened };
}

const offerOf = (peer: number, address = "203.0.113.9") => ({
  offer: { type: "offer", sdp: description(address) },
  offer_id: text(noise(20, 100 + peer)),
  peer_id: text(noise(20, 200 + peer)),
});

test("pageAnnouncer() makes offers, returns the reply, and takes the connection of whoever answers, once", async () => {
  const { made, sent, taken, say, ask, opened } = setUp();
  const { answer } = await ask();
  const offers = (sent[0] as unknown as { offers: { offer: { sdp: string }; offer_id: string }[] }).offers;
  assertEquals([offers.length, made.length], [5, 5]);
  await say({ interval: 120, complete: 2, incomplete: 3 });
  const { peers, intervalMs, seeders } = await answer;
  assertEquals([peers, intervalMs, seeders], [[], 120_000, 2]);
  const reply = {
    answer: { type: "answer", sdp: description("203.0.113.9") },
    offer_id: offers[0]!.offer_id,
    peer_id: text(noise(20, 9)),
  };
  await say(reply);
  await say(reply);
  const answered = made.filter(({ theirs }) => theirs.length > 0);
  assertEquals(answered.map(({ theirs }) => theirs.length), [1]);
  answered[0]!.open();
  await say({});
  assertEquals(taken.length, 1);
  // The same connection to the tracker; offers that still wait are not made again.
  const again = await ask("");
  await say({ interval: 120 });
  await again.answer;
  assertEquals([opened(), made.length], [1, 6]);
});

test("pageAnnouncer() answers offers, but none of its own, of other torrents, or with addresses that may not be asked alone", async () => {
  const { made, sent, taken, say, ask } = setUp();
  const { answer } = await ask();
  await say({ interval: 120 });
  await answer;
  const before = made.length;
  await say({ ...offerOf(1), peer_id: text(ANNOUNCE.peerId) });
  await say({ ...offerOf(1), info_hash: text(noise(20, 77)) });
  await say({ ...offerOf(1), offer: { type: "offer", sdp: "v=0" } });
  assertEquals(made.length, before);
  await say(offerOf(1, "192.168.1.1"));
  assert(!made.at(-1)!.theirs[0]!.includes("192.168"));
  await say(offerOf(2));
  assert(made.at(-1)!.theirs[0]!.includes("203.0.113.9 50000"));
  const said = sent.at(-1) as unknown as { to_peer_id: string; answer: { type: string; sdp: string } };
  assertEquals([said.to_peer_id, said.answer.type], [text(noise(20, 202)), "answer"]);
  made.at(-1)!.open();
  await say({});
  assertEquals(taken.length, 1);
});

test("pageAnnouncer() tells the other side no address that is not for it", async () => {
  const { sent, say, ask } = setUp({ tells: () => false });
  await ask();
  await say({ interval: 120 });
  const [first] = (sent[0] as unknown as { offers: { offer: { sdp: string } }[] }).offers;
  assert(!first!.offer.sdp.includes("candidate"));
});

test("pageAnnouncer() holds at most 24 connections, gives up what does not open in time, and gives places back", async () => {
  const { clock, made, taken, say, ask } = setUp();
  const { answer } = await ask();
  await say({ interval: 120 });
  await answer;
  for (let i = 0; i < 50; i++) await say(offerOf(i));
  assertEquals(made.length, 24);
  made[5]!.open();
  await say({});
  // Answered offers have 20 s, our own 50 s.
  await clock.advanceAsync(20_000);
  assertEquals(made.filter(({ isClosed }) => isClosed).length, 18);
  await clock.advanceAsync(30_000);
  assertEquals(made.filter(({ isClosed }) => isClosed).length, 23);
  for (let i = 0; i < 50; i++) await say(offerOf(i));
  assertEquals(made.length, 24 + 23);
  await clock.advanceAsync(20_000);
  const [connection] = taken;
  connection!.open({ data() {}, end() {}, drain() {}, close() {} });
  connection!.abort();
  for (let i = 0; i < 50; i++) await say(offerOf(i));
  assertEquals(made.length, 24 + 23 + 24);
});

test("pageAnnouncer() fails with the tracker's reason, when it is silent, and when it hangs up; then it connects again", async () => {
  const { clock, made, say, ask, hangUp, opened } = setUp();
  const refused = await ask();
  await say({ "failure reason": "not here" });
  await assertRejects(() => refused.answer, MillraceError, "not here");
  const silent = await ask();
  await clock.advanceAsync(15_000);
  await assertRejects(() => silent.answer, MillraceError);
  const left = await ask();
  hangUp();
  await assertRejects(() => left.answer, MillraceError, "hung up");
  assertEquals([opened(), made.every(({ isClosed }) => isClosed)], [3, true]);
  const last = await ask();
  await say({ interval: 120 });
  await last.answer;
  await (await ask("stopped")).answer;
  assert(made.every(({ isClosed }) => isClosed));
});
