import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { LocalDiscovery } from "../../src/discovery/lsd.ts";
import { decodeLsd, encodeLsd } from "../../src/discovery/lsd-message.ts";
import { MillraceError } from "../../src/errors.ts";
import type { SocketAddress, UdpPort } from "../../src/ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { testPorts, udp, until } from "./support/ports.ts";
import { seededBelow } from "../support/random.ts";

const GROUP = "239.192.152.143:6771";
const hash = (n: number) => new Uint8Array(20).fill(n);
const text = (value: string) => new TextEncoder().encode(value);

test("encodeLsd() writes a search that decodeLsd() reads back", () => {
  const message = { port: 6881, infohashes: [hash(0xab), hash(1)], cookie: "me" };
  const bytes = encodeLsd(GROUP, message);
  assertEquals(
    new TextDecoder().decode(bytes),
    `BT-SEARCH * HTTP/1.1\r\nHost: ${GROUP}\r\nPort: 6881\r\nInfohash: ${"ab".repeat(20)}\r\n` +
      `Infohash: ${"01".repeat(20)}\r\ncookie: me\r\n\r\n\r\n`,
  );
  assertEquals(decodeLsd(bytes), message);
  assert(encodeLsd(GROUP, { ...message, infohashes: Array.from({ length: 99 }, (_, n) => hash(n)) }).length <= 1_400);
});

const valid = `Port: 1\r\nInfohash: ${"a".repeat(40)}\r\n`;
const odd: readonly [name: string, datagram: string, port: number | null][] = [
  ["bare line feeds and other cases", `bt-search * http/1.1\nport:7\nINFOHASH: ${"A".repeat(40)}\n\n`, 7],
  ["unknown headers", `BT-SEARCH * HTTP/1.1\r\nX: y\r\n:\r\nnothing\r\n${valid}\r\n\r\n`, 1],
  ["no end", `BT-SEARCH * HTTP/1.1\r\n${valid}`, 1],
  ["another method", `M-SEARCH * HTTP/1.1\r\n${valid}`, null],
  ["no port", `BT-SEARCH * HTTP/1.1\r\nInfohash: ${"a".repeat(40)}\r\n`, null],
  ["port 0", `BT-SEARCH * HTTP/1.1\r\n${valid}Port: 0\r\n`, null],
  ["port 65536", `BT-SEARCH * HTTP/1.1\r\n${valid}Port: 65536\r\n`, null],
  ["a short infohash", `BT-SEARCH * HTTP/1.1\r\nPort: 1\r\nInfohash: abc\r\n`, null],
  ["too many bytes", `BT-SEARCH * HTTP/1.1\r\n${valid}${"x".repeat(1_400)}`, null],
  ["nothing", "", null],
];
for (const [name, datagram, port] of odd) {
  test(`decodeLsd() reads ${port === null ? "nothing" : "the search"} from a datagram with ${name}`, () => {
    assertEquals(decodeLsd(text(datagram))?.port ?? null, port);
  });
}

test("decodeLsd() never throws on 2,000 mutations and takes at most 20 infohashes", () => {
  const random = seededBelow(3);
  const base = encodeLsd(GROUP, { port: 1, infohashes: [hash(1), hash(2)], cookie: "c" });
  for (let i = 0; i < 2_000; i++) {
    const bytes = base.slice(0, random(base.length + 1));
    for (let n = random(5); n > 0 && bytes.length > 0; n--) bytes[random(bytes.length)] = random(256);
    decodeLsd(bytes);
  }
  const many = `BT-SEARCH * HTTP/1.1\nPort:1\n${`Infohash:${"a".repeat(40)}\n`.repeat(27)}`;
  assertEquals(decodeLsd(text(many))?.infohashes.length, 20);
});

/** A UDP port that records what is sent and delivers what the test supplies. */
function fakeUdp() {
  const sent: { infohashes: number[]; port: number }[] = [];
  let deliver: (data: Uint8Array, from: SocketAddress) => void = () => {};
  let closed = 0;
  const port: UdpPort = {
    bind: () =>
      Promise.resolve({
        address: { host: "0.0.0.0", port: 6771 },
        onMessage: (handler) => void (deliver = handler),
        send(data) {
          const message = decodeLsd(data)!;
          sent.push({ infohashes: message.infohashes.map((infohash) => infohash[0]!), port: message.port });
          last = data;
          return Promise.resolve();
        },
        close: () => void closed++,
      }),
  };
  let last: Uint8Array = new Uint8Array();
  return {
    port,
    sent,
    deliver: (data: Uint8Array, host = "10.0.0.5") => deliver(data, { host, port: 6771 }),
    lastSent: () => last,
    closed: () => closed,
  };
}

async function fakeLsd(peerPort = 8621) {
  const clock = new FakeClock();
  const network = fakeUdp();
  const context = { udp: network.port, clock, log: silent, random: () => 0.5, peerPort: () => peerPort };
  return { clock, ...network, lsd: await LocalDiscovery.open(context) };
}

test("LocalDiscovery announces swarms that start together at once, in one datagram, and again after 5 min", async () => {
  const { lsd, clock, sent } = await fakeLsd();
  lsd.join(hash(1), () => {});
  const second = lsd.join(hash(2), () => {});
  clock.advance(0);
  assertEquals(sent, [{ infohashes: [1, 2], port: 8621 }]);
  second.close();
  clock.advance(300_000);
  assertEquals(sent.slice(1), [{ infohashes: [1], port: 8621 }]);
  lsd.close();
  assertEquals(clock.pendingTimers, 0);
});

test("LocalDiscovery splits many infohashes over datagrams", async () => {
  const { lsd, clock, sent } = await fakeLsd();
  for (let n = 0; n < 45; n++) lsd.join(hash(n), () => {});
  clock.advance(0);
  assertEquals(sent.map(({ infohashes }) => infohashes.length), [20, 20, 5]);
  lsd.close();
});

test("LocalDiscovery announces on demand and in reply at most once per minute", async () => {
  const { lsd, clock, sent, deliver } = await fakeLsd();
  const found: SocketAddress[] = [];
  const member = lsd.join(hash(1), (peer) => found.push(peer));
  clock.advance(0);
  for (let second = 0; second < 59; second++) {
    member.needPeers();
    deliver(encodeLsd(GROUP, { port: 9, infohashes: [hash(1), hash(3)], cookie: null }));
    clock.advance(1_000);
  }
  assertEquals(sent.length, 1);
  clock.advance(1_000);
  assertEquals(sent.length, 2);
  assertEquals(found[0], { host: "10.0.0.5", port: 9 });
  assertEquals([member.status().peers, member.status().nextAnnounceMs], [1, 300_000]);
  lsd.close();
});

test("LocalDiscovery ignores its own announces and those of unknown swarms", async () => {
  const { lsd, clock, deliver, lastSent, closed } = await fakeLsd();
  const found: SocketAddress[] = [];
  lsd.join(hash(1), (peer) => found.push(peer));
  clock.advance(0);
  deliver(lastSent());
  deliver(encodeLsd(GROUP, { port: 9, infohashes: [hash(2)], cookie: "x" }));
  assertEquals(found, []);
  lsd.close();
  deliver(encodeLsd(GROUP, { port: 9, infohashes: [hash(1)], cookie: "x" }));
  assertEquals([found.length, closed()], [0, 1]);
});

test("LocalDiscovery reports no address of one link, with or without its interface", async () => {
  const { lsd, deliver } = await fakeLsd();
  const found: string[] = [];
  lsd.join(hash(1), ({ host }) => found.push(host));
  const hello = encodeLsd(GROUP, { port: 9, infohashes: [hash(1)], cookie: "x" });
  for (const host of ["fe80::9%eth0", "fe80::9", "febf:1::9", "fd00::9", "fec0::9"]) deliver(hello, host);
  assertEquals(found, ["fd00::9", "fec0::9"]);
  lsd.close();
});

test("LocalDiscovery stays silent while there is no listening port", async () => {
  const { lsd, clock, sent } = await fakeLsd(0);
  lsd.join(hash(1), () => {});
  clock.advance(0);
  assertEquals(sent, []);
  lsd.close();
});

test("LocalDiscovery.open() rejects when no interface can join the group, and otherwise uses those that can", async () => {
  const context = { clock: new FakeClock(), log: silent, random: () => 0.5, peerPort: () => 1 };
  const bound: string[] = [];
  const some: UdpPort = {
    bind: ({ multicastInterface }) => {
      bound.push(multicastInterface!);
      return multicastInterface === "10.0.0.1"
        ? fakeUdp().port.bind({})
        : Promise.reject(new MillraceError("unavailable", "no such interface"));
    },
  };
  await assertRejects(
    () => LocalDiscovery.open({ ...context, udp: some }, { interfaces: ["10.9.9.9"] }),
    MillraceError,
  );
  (await LocalDiscovery.open({ ...context, udp: some }, { interfaces: ["10.9.9.9", "10.0.0.1"] })).close();
  assertEquals(bound, ["10.9.9.9", "10.9.9.9", "10.0.0.1"]);
});

test("LocalDiscovery finds another instance over multicast on loopback", async () => {
  const { clock } = testPorts();
  const options = { interfaces: ["127.0.0.1"] };
  const open = (port: number) =>
    LocalDiscovery.open({ udp, clock, log: silent, random: Math.random, peerPort: () => port }, options);
  const [a, b] = await Promise.all([open(7001), open(7002)]);
  const found: string[] = [];
  b.join(hash(9), (peer) => found.push(`b:${peer.port}`));
  a.join(hash(9), (peer) => found.push(`a:${peer.port}`));
  await until(() => found.includes("b:7001"), "b heard a");
  assert(!found.includes("b:7002") && !found.includes("a:7001"), found.join());
  a.close();
  b.close();
});
