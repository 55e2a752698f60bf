import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import type { PeerOrigin } from "../../src/discovery/types.ts";
import { MillraceError } from "../../src/errors.ts";
import { decodeLiveMessage } from "../../src/live/messages.ts";
import { Conduct } from "../../src/live/node/neighbour/conduct.ts";
import { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import {
  decodeReachMessage,
  encodeReachMessage,
  MAX_TOLD_PEERS,
  type ReachMessage,
} from "../../src/live/reach-messages.ts";
import { PeerAdmission } from "../../src/live/swarm/admission.ts";
import { LOBBY_PEERS, lobbyLeavers } from "../../src/live/swarm/lobby.ts";
import type { LivePeerSession } from "../../src/live/swarm/live-session.ts";
import { RedialPolicy } from "../../src/live/swarm/redial.ts";
import { AddressBook } from "../../src/swarm/neighbours/address-book.ts";
import { DialSlots } from "../../src/swarm/neighbours/dial-slots.ts";
import { Dialer } from "../../src/swarm/neighbours/dialer.ts";
import { Reachability } from "../../src/swarm/neighbours/reachability.ts";
import { BROADCAST, SearchPace } from "../../src/swarm/torrent/search-pace.ts";
import { ScriptedLink } from "./support.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { seededRandom } from "../simulation/event-queue.ts";

const bytes = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));

test("decodeReachMessage() reads what encodeReachMessage() wrote, byte by byte", () => {
  const table: [ReachMessage, string][] = [
    [{ type: "reach", state: "unknown", asks: true }, "060001"],
    [{ type: "reach", state: "open", asks: false }, "060100"],
    [{ type: "reach", state: "closed", asks: false }, "060200"],
    [{ type: "peers", addresses: [] }, "0700"],
    [{
      type: "peers",
      addresses: [{ host: "203.0.113.9", port: 8621 }, { host: "2001:db8::9", port: 1 }],
    }, "070204cb00710921ad1020010db80000000000000000000000090001"],
  ];
  for (const [message, hex] of table) {
    assertEquals(encodeReachMessage(message), bytes(hex));
    assertEquals(decodeReachMessage(bytes(hex)), message);
    assertEquals(decodeLiveMessage(bytes(hex)), null, "older members ignore it");
  }
});

test("encodeReachMessage() leaves out invalid addresses, and those beyond sixteen", () => {
  const addresses = Array.from(
    { length: 40 },
    (_, i) => ({ host: i === 0 ? "name.example" : `203.0.113.${i}`, port: 1 }),
  );
  const read = decodeReachMessage(encodeReachMessage({ type: "peers", addresses }));
  assertEquals(read, { type: "peers", addresses: addresses.slice(1, 1 + MAX_TOLD_PEERS) });
});

test("decodeReachMessage() refuses malformed messages, and leaves other types to others", () => {
  for (
    const hex of ["06", "0601", "06010000", "07", "0711", "0701", "070105cb0071092100", "070104cb007109", "070004"]
  ) {
    assertThrows(() => decodeReachMessage(bytes(hex)), MillraceError, "malformed");
  }
  assertEquals(decodeReachMessage(bytes("070104cb0071090000")), { type: "peers", addresses: [] });
  assertEquals(decodeReachMessage(bytes("06ff00")), { type: "reach", state: "unknown", asks: false });
  assertEquals(decodeReachMessage(bytes("040000000000000000")), null);
});

test("decodeReachMessage() gives a message or a violation for any bytes", () => {
  const random = seededRandom(12);
  for (let i = 0; i < 20_000; i++) {
    const message = Uint8Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256));
    if (message.length > 0) message[0] = 6 + (i & 1);
    if (message.length > 1 && random() < 0.5) message[1] = Math.floor(random() * 4);
    for (let at = 2; at < message.length; at += 7) if (random() < 0.8) message[at] = 4;
    try {
      const read = decodeReachMessage(message);
      if (read?.type === "peers") assert(read.addresses.length <= MAX_TOLD_PEERS);
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation");
    }
  }
});

function reachability() {
  const state = { nowMs: 0 };
  const reach = new Reachability(() => state.nowMs, (host) => !host.startsWith("192.168."));
  return { state, reach };
}

test("Reachability is open for half an hour after a stranger got in, whoever failed before", () => {
  const { state, reach } = reachability();
  assertEquals(reach.state, "unknown");
  reach.incoming("192.168.1.7");
  assertEquals(reach.state, "unknown", "our own network proves nothing");
  for (const network of ["203.0.113", "198.51.100"]) reach.asked(network);
  state.nowMs = 5_000;
  assertEquals(reach.state, "closed");
  reach.incoming("203.0.113.9");
  assertEquals([reach.state, reach.wantsHelp("192.0.2", "192.0.2.1")], ["open", false]);
  state.nowMs += 30 * 60_000;
  assertEquals([reach.state, reach.wantsHelp("192.0.2", "192.0.2.1")], ["unknown", true]);
});

test("Reachability is closed when helpers of two networks did not get in within 4 s, for ten minutes", () => {
  const { state, reach } = reachability();
  assertEquals(reach.wantsHelp("203.0.113", "192.168.1.9"), false);
  assertEquals(reach.wantsHelp("203.0.113", "203.0.113.1"), true);
  reach.asked("203.0.113");
  assertEquals(reach.wantsHelp("203.0.113", "203.0.113.2"), false, "the same network again");
  state.nowMs = 10_000;
  assertEquals(reach.state, "unknown", "one helper may be unwilling");
  reach.asked("198.51.100");
  assertEquals([reach.state, reach.wantsHelp("192.0.2", "192.0.2.1")], ["unknown", false]);
  state.nowMs += 4_000;
  assertEquals(reach.state, "closed");
  state.nowMs += 10 * 60_000;
  assertEquals([reach.state, reach.wantsHelp("192.0.2", "192.0.2.1")], ["unknown", true]);
});

test("Reachability asks again when the way in changed", () => {
  const { state, reach } = reachability();
  for (const network of ["203.0.113", "198.51.100"]) reach.asked(network);
  state.nowMs = 5_000;
  reach.changed();
  assertEquals([reach.state, reach.wantsHelp("203.0.113", "203.0.113.1")], ["unknown", true]);
});

/** Seconds at which a swarm asks, looked at each half second. */
function asked(pace: SearchPace, untilS: number, isShort: (s: number) => boolean, isLonely: (s: number) => boolean) {
  const times: number[] = [];
  for (let s = 0; s <= untilS; s += 0.5) if (pace.due(1000 * s, isShort(s), isLonely(s)) !== "none") times.push(s);
  return times;
}

test("SearchPace has a lonely broadcast ask each 2.5 s for some minutes, then up to each 10 s", () => {
  const times = asked(new SearchPace(BROADCAST), 3600, () => true, () => true);
  assertEquals(times.slice(0, 4), [0, 2.5, 5, 7.5]);
  assertEquals(times.at(-1)! - times.at(-2)!, 10);
  assert(times.length < 500, `${times.length} requests in an hour`);
});

test("SearchPace has a lonely magnet ask soon and often at first, then each 15 s", () => {
  const times = asked(new SearchPace(), 120, () => true, () => true);
  assertEquals(times.slice(0, 7), [0, 2.5, 5, 10, 20, 35, 50]);
  assertEquals(times.at(-1)! - times.at(-2)!, 15);
});

test("SearchPace asks each 15 s when peers are few, at once when there is nobody left, and not when there are enough", () => {
  const times = asked(new SearchPace(BROADCAST), 60, (s) => s < 40, (s) => s >= 18 && s < 24);
  assertEquals(times, [0, 15, 18, 20.5, 23, 38]);
});

const host = (i: number) => ({ host: `198.51.100.${i}`, port: 6881 });

test("RedialPolicy dials those of our own network first, and of others those that can be dialled", () => {
  const policy = new RedialPolicy(() => 0.5, () => [] as PeerOrigin[], (name) => name.endsWith(".4"));
  const book = new AddressBook(policy);
  for (let i = 1; i <= 4; i++) book.add(host(i), "pex");
  policy.isReachable(book.get(host(3))!);
  const order = [1, 2, 3, 4].map(() => {
    const next = book.next(0, () => false)!;
    next.state = "dialing";
    return next.address.host;
  });
  assertEquals(order.slice(0, 2), ["198.51.100.4", "198.51.100.3"]);
});

test("RedialPolicy dials a newcomer that took the metadata again soon, a few times", () => {
  const policy = new RedialPolicy(() => 0.5, () => []);
  const book = new AddressBook(policy);
  book.add(host(1), "tracker");
  const entry = book.get(host(1))!;
  const delays = Array.from({ length: 6 }, () => {
    policy.fetchedMetadata(entry);
    book.ended(entry, 0);
    return entry.retryAtMs;
  });
  assertEquals(delays, [300, 600, 1200, 2400, 4800, 5000]);
});

test("Dialer tries others when dials take long, and gives these up in the end", async () => {
  const clock = new FakeClock();
  const book = new AddressBook();
  for (let i = 1; i <= 6; i++) book.add(host(i), "tracker");
  const dialled: string[] = [];
  const given: string[] = [];
  const dialer = new Dialer(
    {
      clock,
      book,
      dialTimes: { connectTimeoutMs: 3000, doubtfulAfterMs: 1000 },
      room: () => 2,
      skips: () => false,
      connected: () => {},
      failed: () => {},
    },
    {
      connect: ({ address }, signal) => {
        dialled.push(address.host);
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => (given.push(address.host), reject(new Error("late"))));
        });
      },
    },
    new DialSlots(5),
  );
  dialer.pump();
  assertEquals(dialled.length, 2);
  clock.advance(1000);
  assertEquals(dialled.length, 4);
  clock.advance(1000);
  assertEquals(dialled.length, 5, "as many as there are slots");
  clock.advance(1000);
  await settle();
  assertEquals([given.length, dialled.length], [2, 6]);
  dialer.close();
});

function lobbySession(i: number, parts: Partial<LivePeerSession> = {}): LivePeerSession {
  return {
    host: `203.0.113.${i}`,
    incoming: true,
    isReady: true,
    startedMs: i,
    peer: null,
    reach: "unknown",
    ...parts,
  } as LivePeerSession;
}

/** A node that exchanges nothing with anybody. */
function idleNode(conduct = new Conduct()) {
  return { conduct, isUsed: () => false };
}

test("lobbyLeavers() clears places at members that others can connect to before those behind NAT", () => {
  const admission = new PeerAdmission(10);
  const sessions = Array.from({ length: 6 }, (_, i) => lobbySession(i, { reach: i % 2 === 0 ? "open" : "closed" }));
  sessions.forEach((session, i) => admission.take(`198.51.${i}.1`, session.incoming));
  assertEquals(lobbyLeavers(sessions, admission, idleNode(), 10_000).map(({ startedMs }) => startedMs), [
    4,
    2,
    0,
    5,
  ]);
});

test("lobbyLeavers() parts first with members that let us down", () => {
  const admission = new PeerAdmission(10);
  const conduct = new Conduct();
  const sessions = Array.from({ length: 6 }, (_, i) => {
    const peer = new LivePeer(new ScriptedLink(), { role: "viewer", upBytesPerS: null }, i);
    if (i === 3) conduct.noteFailedTrial(peer, 9000);
    return lobbySession(i, { peer });
  });
  sessions.forEach((session, i) => admission.take(`198.51.${i}.1`, session.incoming));
  assertEquals(lobbyLeavers(sessions, admission, idleNode(conduct), 10_000).map(({ startedMs }) => startedMs), [
    3,
    5,
    4,
    2,
  ]);
});

test("lobbyLeavers() clears places within a network that has all it may have, so that its next viewers get in", () => {
  const admission = new PeerAdmission(80);
  const sessions = Array.from({ length: 40 }, (_, i) => lobbySession(i));
  for (const session of sessions) assertEquals(admission.take(session.host, true), true);
  assertEquals(admission.allows("203.0.113.99", true), false);
  const leavers = lobbyLeavers(sessions, admission, idleNode(), 10_000);
  assertEquals(leavers.length, LOBBY_PEERS);
  for (const session of leavers) admission.release(session.host, true);
  assertEquals(admission.allows("203.0.113.99", true), true);
  assertEquals(lobbyLeavers(sessions.slice(4), admission, idleNode(), 10_000), []);
});
