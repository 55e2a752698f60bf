import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Announce } from "../../src/discovery/announce.ts";
import { UdpTrackerClient } from "../../src/discovery/udp-tracker.ts";
import { parseAnnounce, parseConnect, transactionOf } from "../../src/discovery/udp-tracker-messages.ts";
import { MillraceError } from "../../src/errors.ts";
import type { UdpPort, UdpSocket } from "../../src/ports.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { compact } from "./support/http-tracker.ts";
import { testPorts, udp, until } from "./support/ports.ts";
import { announceBody, connectBody, startUdpTracker, type UdpReply } from "./support/udp-tracker.ts";
import { seededBelow } from "../support/random.ts";

const announce: Announce = {
  infohash: new Uint8Array(20).fill(1),
  peerId: new Uint8Array(20).fill(2),
  port: 8621,
  uploadedBytes: 3,
  downloadedBytes: 4,
  leftBytes: 5_000_000_000,
  event: "started",
  numWant: 80,
  key: 0xfffffffe,
  trackerId: null,
};
const never = new AbortController().signal;
const peers = compact("10.0.0.1:6881", "10.0.0.2:51413");
const good: UdpReply = ({ action }) => ({ body: action === 0 ? connectBody() : announceBody(1800, 5, 6, peers) });

/** Runs `body` with a tracker, a client and a stopped clock. */
async function withTracker(
  reply: UdpReply,
  body: (context: {
    client: UdpTrackerClient;
    clock: FakeClock;
    url: string;
    tracker: Awaited<ReturnType<typeof startUdpTracker>>;
  }) => Promise<void>,
): Promise<void> {
  const clock = new FakeClock();
  const tracker = await startUdpTracker(udp, reply);
  const client = new UdpTrackerClient(testPorts({ clock }));
  try {
    await body({ client, clock, tracker, url: `udp://127.0.0.1:${tracker.port}/announce?pass=${"k".repeat(300)}` });
    assertEquals(clock.pendingTimers, 0);
  } finally {
    await client.close();
    tracker.close();
  }
}

test("UdpTrackerClient.announce() connects, announces all fields and reads the answer", async () => {
  await withTracker(good, async ({ client, tracker, url }) => {
    const answer = await client.announce(url, announce, never);
    assertEquals(answer.peers, [{ host: "10.0.0.1", port: 6881 }, { host: "10.0.0.2", port: 51413 }]);
    assertEquals([answer.intervalMs, answer.leechers, answer.seeders], [1_800_000, 5, 6]);
    const [connect, request] = tracker.seen;
    assertEquals([connect!.connectionId, connect!.bytes.length], [0x41727101980n, 16]);
    assertEquals([request!.action, request!.connectionId], [1, 0x1122334455667788n]);
    const { bytes } = request!;
    const fields = new DataView(bytes.buffer, bytes.byteOffset);
    assertEquals(bytes.slice(16, 56), new Uint8Array([...announce.infohash, ...announce.peerId]));
    assertEquals([56, 64, 72].map((at) => fields.getBigUint64(at)), [4n, 5_000_000_000n, 3n]);
    assertEquals([80, 84, 88, 92].map((at) => fields.getUint32(at)), [2, 0, 0xfffffffe, 80]);
    assertEquals(fields.getUint16(96), 8621);
    // BEP 41: the path in parts of at most 255 bytes.
    assertEquals([bytes[98], bytes[99], bytes[98 + 257], bytes[98 + 258]], [2, 255, 2, 60]);
    assertEquals(new TextDecoder().decode(bytes.slice(100, 115)), "/announce?pass=");
  });
});

test("UdpTrackerClient.announce() uses a connection for 60 s and opens another after that", async () => {
  await withTracker(good, async ({ client, clock, tracker, url }) => {
    for (const advanceMs of [0, 59_999, 1]) {
      clock.advance(advanceMs);
      await client.announce(url, announce, never);
    }
    assertEquals(tracker.seen.map(({ action }) => action), [0, 1, 1, 0, 1]);
  });
});

test("UdpTrackerClient.announce() retries after 3, 15 and 30 s and gives up after 108 s", async () => {
  const sent: number[] = [];
  await withTracker(() => null, async ({ client, clock, tracker, url }) => {
    const answer = assertRejects(() => client.announce(url, announce, never), MillraceError);
    for (const stepMs of [3_000, 15_000, 30_000, 60_000]) {
      await until(() => tracker.seen.length === sent.length + 1, "the tracker got a datagram");
      sent.push(clock.monotonic());
      await clock.advanceAsync(stepMs);
    }
    assertEquals((await answer).code, "timeout");
  });
  assertEquals(sent, [0, 3_000, 18_000, 48_000]);
});

test("UdpTrackerClient.announce() recovers from one lost datagram after 3 s", async () => {
  const lossy: UdpReply = (seen, count) => count === 2 ? null : good(seen, count);
  await withTracker(lossy, async ({ client, clock, tracker, url }) => {
    const answer = client.announce(url, announce, never);
    await until(() => tracker.seen.length === 2, "the announce got lost");
    clock.advance(3_000);
    assertEquals((await answer).peers.length, 2);
    assertEquals(tracker.seen.map(({ action }) => action), [0, 1, 1]);
  });
});

const text = (value: string) => new TextEncoder().encode(value);
const failures: readonly [name: string, code: string, message: string, reply: UdpReply][] = [
  ["an error to connect", "tracker", "go away", () => ({ action: 3, body: text("go away") })],
  ["an error to announce", "tracker", "unregistered", (seen, n) => {
    return seen.action === 0 ? good(seen, n) : { action: 3, body: text("unregistered\0") };
  }],
  ["an error without text", "tracker", "without a reason", () => ({ action: 3, body: new Uint8Array() })],
  ["another action", "protocol_violation", "action", () => ({ action: 2, body: connectBody() })],
  ["a short connect", "protocol_violation", "short", () => ({ body: new Uint8Array(7) })],
  ["a short announce", "protocol_violation", "short", (seen, n) => {
    return seen.action === 0 ? good(seen, n) : { body: new Uint8Array(11) };
  }],
];
for (const [name, code, message, reply] of failures) {
  test(`UdpTrackerClient.announce() rejects with ${code} when the tracker replies with ${name}`, async () => {
    await withTracker(reply, async ({ client, url }) => {
      const error = await assertRejects(() => client.announce(url, announce, never), MillraceError, message);
      assertEquals(error.code, code);
    });
  });
}

/** A tracker that knows some of the connection ids that it gives, 1, 2 …, and refuses or ignores the others. */
function forgetful(knows: (id: bigint) => boolean, refusal: Uint8Array | null): UdpReply {
  let connects = 0;
  return ({ action, connectionId }) => {
    if (action === 0) return { body: connectBody(BigInt(++connects)) };
    if (knows(connectionId)) return { body: announceBody(1800, 5, 6, peers) };
    return refusal && { action: 3, body: refusal };
  };
}

for (const reason of ["Connection ID missmatch.", "invalid cookie", ""]) {
  test(`UdpTrackerClient.announce() announces with a fresh id when the first is refused with "${reason}"`, async () => {
    await withTracker(forgetful((id) => id > 1, text(reason)), async ({ client, tracker, url }) => {
      assertEquals((await client.announce(url, announce, never)).peers.length, 2);
      assertEquals(tracker.seen.map(({ action }) => action), [0, 1, 0, 1]);
    });
    await withTracker(forgetful(() => false, text(reason)), async ({ client, tracker, url }) => {
      const error = await assertRejects(() => client.announce(url, announce, never), MillraceError);
      assertEquals([error.code, tracker.seen.length], ["tracker", 4]);
    });
  });
}

test("UdpTrackerClient.announce() announces once to a tracker that refuses the torrent", async () => {
  await withTracker(forgetful(() => false, text("unregistered torrent")), async ({ client, tracker, url }) => {
    await assertRejects(() => client.announce(url, announce, never), MillraceError, "unregistered torrent");
    assertEquals(tracker.seen.map(({ action }) => action), [0, 1]);
  });
});

for (const refusal of [text("try again"), null]) {
  test(`UdpTrackerClient.announce() gets a fresh id when a restarted tracker ${refusal ? "refuses" : "ignores"} ours`, async () => {
    let least = 1n;
    await withTracker(forgetful((id) => id >= least, refusal), async ({ client, clock, tracker, url }) => {
      await client.announce(url, announce, never);
      least = 2n;
      const again = client.announce(url, announce, never);
      await until(() => tracker.seen.length >= 3, "the tracker got the old id");
      if (refusal === null) await clock.advanceAsync(3_000);
      assertEquals((await again).peers.length, 2);
      assertEquals(tracker.seen.map(({ action }) => action), [0, 1, 1, 0, 1]);
    });
  });
}

for (const forgery of ["another transaction", "another address"] as const) {
  test(`UdpTrackerClient.announce() ignores a reply for or from ${forgery}`, async () => {
    const clock = new FakeClock();
    const stranger = await udp.bind({ host: "127.0.0.1" });
    let clientPort = 0;
    const ports = testPorts({
      clock,
      udp: {
        async bind(options) {
          const socket = await udp.bind(options);
          clientPort = socket.address.port;
          return socket;
        },
      },
    });
    const tracker = await startUdpTracker(udp, (seen, count) => {
      if (count > 1) return good(seen, count);
      if (forgery === "another transaction") return { body: connectBody(), transactionId: 1 };
      void stranger.send(
        new Uint8Array([0, 0, 0, 0, ...seen.bytes.slice(12, 16), ...connectBody(1n)]),
        { host: "127.0.0.1", port: clientPort },
      );
      return null;
    });
    const client = new UdpTrackerClient(ports);
    const answer = client.announce(`udp://127.0.0.1:${tracker.port}`, announce, never);
    await until(() => tracker.seen.length === 1, "the tracker was asked");
    await settle();
    await clock.advanceAsync(3_000);
    assertEquals((await answer).peers.length, 2);
    assertEquals(tracker.seen.map(({ action, connectionId }) => [action, connectionId === 1n]), [
      [0, false],
      [0, false],
      [1, false],
    ]);
    await client.close();
    stranger.close();
    tracker.close();
  });
}

test("UdpTrackerClient.announce() rejects URLs without a port, and everything after close()", async () => {
  await withTracker(good, async ({ client, url }) => {
    const noPort = await assertRejects(() => client.announce("udp://127.0.0.1/", announce, never), MillraceError);
    assertEquals(noPort.code, "invalid_argument");
    await client.close();
    assertEquals((await assertRejects(() => client.announce(url, announce, never), MillraceError)).code, "closed");
  });
});

test("UdpTrackerClient.announce() reads IPv6 peers from a tracker with an IPv6 address", async () => {
  const peer = new Uint8Array([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0x1a, 0xe1]);
  const answer = parseAnnounce(new Uint8Array([0, 0, 0, 1, 0, 0, 0, 9, ...announceBody(60, 0, 1, peer)]), 6);
  assertEquals(answer.peers, [{ host: "2001:db8::5", port: 6881 }]);
  const asked: string[] = [];
  const clock = new FakeClock();
  const ports = testPorts({
    clock,
    udp: {
      bind(options) {
        asked.push(options.host ?? "");
        return Promise.reject(new MillraceError("unavailable", "no IPv6 here"));
      },
    },
  });
  const client = new UdpTrackerClient(ports);
  await assertRejects(() => client.announce("udp://[::1]:6969/announce", announce, never), MillraceError, "no IPv6");
  assertEquals(asked, ["::"]);
});

/** A UDP port on which the hosts of `replies` are trackers; datagrams to other hosts are lost. */
function fakeUdp(replies: Record<string, UdpReply>) {
  const sent: string[] = [];
  const bind: UdpPort["bind"] = ({ host = "" }) => {
    let receive: Parameters<UdpSocket["onMessage"]>[0] = () => {};
    return Promise.resolve({
      address: { host, port: 1 },
      onMessage: (handler) => void (receive = handler),
      send(bytes, to) {
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        const action = view.getUint32(8);
        sent.push(`${to.host} ${action === 0 ? "connect" : bytes[83]}`);
        const reply = replies[to.host]?.({ action, connectionId: view.getBigUint64(0), bytes }, sent.length);
        if (!reply) return Promise.resolve();
        const answer = new Uint8Array(8 + reply.body.length);
        answer.set(bytes.subarray(8, 12));
        answer.set(bytes.subarray(12, 16), 4);
        answer.set(reply.body, 8);
        queueMicrotask(() => receive(answer, to));
        return Promise.resolve();
      },
      close() {},
    });
  };
  return { bind, sent };
}

/** A tracker with an address of each family, on a machine with or without IPv6. */
function dualStack(replies: Record<string, UdpReply>, hasIpv6 = true, v4 = "192.0.2.1") {
  const clock = new FakeClock();
  const port = fakeUdp(replies);
  const own = {
    name: "eth0",
    host: hasIpv6 ? "2001:4860::7" : "fe80::7",
    prefixLength: 64,
    family: 6,
    loopback: false,
  } as const;
  const network = { interfaces: () => [own], resolve: () => Promise.resolve(["2001:4860::1", v4]) };
  const client = new UdpTrackerClient(testPorts({ clock, udp: port, network }));
  return { clock, client, sent: port.sent, url: "udp://tracker.example:6969/announce" };
}

const peer6 = new Uint8Array([0x20, 1, 0x48, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0x1a, 0xe1]);
const good6: UdpReply = ({ action }) => ({ body: action === 0 ? connectBody() : announceBody(900, 1, 2, peer6) });

test("UdpTrackerClient.announce() announces at both addresses of a tracker, and takes peers from both (BEP 7, 15)", async () => {
  const { client, clock, sent, url } = dualStack({ "192.0.2.1": good, "2001:4860::1": good6 });
  const late: string[] = [];
  const answer = await client.announce(
    url,
    announce,
    never,
    { late: ({ peers }) => late.push(...peers.map(({ host }) => host)) },
  );
  await settle();
  assertEquals([...answer.peers.map(({ host }) => host), ...late].sort(), ["10.0.0.1", "10.0.0.2", "2001:4860::5"]);
  assertEquals(sent.length, 4);
  await client.announce(url, { ...announce, event: "stopped" }, never);
  assertEquals(sent.slice(4).sort(), ["192.0.2.1 3", "2001:4860::1 3"]);
  await settle();
  assertEquals(clock.pendingTimers, 0);
  await client.close();
});

test("UdpTrackerClient.announce() does not wait for a silent family, and sends it no `stopped`", async () => {
  for (const [host, reply] of [["192.0.2.1", good], ["2001:4860::1", good6]] as const) {
    const { client, clock, sent, url } = dualStack({ [host]: reply });
    assert((await client.announce(url, announce, never)).peers.length > 0);
    await clock.advanceAsync(20_000);
    assertEquals(clock.pendingTimers, 0);
    sent.length = 0;
    await client.announce(url, { ...announce, event: "stopped" }, never);
    assert(sent.every((line) => line.startsWith(host)), sent.join());
    await client.close();
  }
});

test("UdpTrackerClient.announce() skips IPv6 on a machine without it, and gives up when neither address replies", async () => {
  const without = dualStack({ "192.0.2.1": good, "2001:4860::1": good6 }, false);
  await without.client.announce(without.url, announce, never);
  assertEquals(without.sent, ["192.0.2.1 connect", "192.0.2.1 2"]);
  const { client, clock, url } = dualStack({});
  const pending = client.announce(url, announce, never);
  let over = false;
  pending.catch(() => (over = true));
  while (!over) await clock.advanceAsync(1000);
  assertEquals((await assertRejects(() => pending, MillraceError)).code, "timeout");
  const closed = client.announce(url, announce, never);
  closed.catch(() => {});
  await settle();
  await client.close();
  assertEquals((await assertRejects(() => closed, MillraceError)).code, "closed");
  assertEquals(clock.pendingTimers, 0);
});

test("UDP tracker parsers throw only MillraceError on 3,000 random datagrams", () => {
  const random = seededBelow(7);
  for (let i = 0; i < 3_000; i++) {
    const bytes = new Uint8Array(random(60)).map(() => random(256));
    if (i % 2 === 0) bytes.set([0, 0, 0, random(4)].slice(0, bytes.length));
    for (const parse of [transactionOf, parseConnect, (data: Uint8Array) => parseAnnounce(data, i % 3 ? 4 : 6)]) {
      try {
        parse(bytes);
      } catch (error) {
        assert(error instanceof MillraceError, String(error));
      }
    }
  }
});

test("UdpTrackerClient.announce() sends nothing to a private address when the scope is public", async () => {
  for (const v4 of ["127.0.0.1", "192.168.1.1", "169.254.1.1"]) {
    const { client, sent, url } = dualStack({ [v4]: good, "2001:4860::1": good6 }, true, v4);
    const error = await assertRejects(() => client.announce(url, announce, never, { scope: "public" }), MillraceError);
    assertEquals([error.code, sent], ["denied", []]);
    await client.close();
  }
  const { client, sent, url } = dualStack({ "8.8.8.8": good }, false, "8.8.8.8");
  await client.announce(url, announce, never, { scope: "public" });
  assertEquals(sent, ["8.8.8.8 connect", "8.8.8.8 2"]);
  await client.close();
});
