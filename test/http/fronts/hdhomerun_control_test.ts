/** The control connection of a tuner: packets as libhdhomerun writes them, and who is served. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { TunerControl } from "../../../src/http/fronts/hdhomerun/control.ts";
import { readPacket, writePacket } from "../../../src/http/fronts/hdhomerun/packets.ts";
import type { RequestInfo, SocketAddress, TcpConnection, TcpHandlers } from "../../../src/ports.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { clip } from "../../support/fixtures.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { until } from "../../support/until.ts";

const NEAR = "192.168.7.9";
const log = { log: () => {}, child: () => log };
const text = (value: string) => new TextEncoder().encode(`${value}\0`);

/** A request for a variable, or to set it. */
function request(name: string, value?: string, type = 4): Uint8Array {
  const values: [number, Uint8Array][] = [[3, text(name)]];
  if (value !== undefined) values.push([4, text(value)]);
  return writePacket({ type, values });
}

function setUp() {
  const clock = new FakeClock();
  const asked: [url: string, info: RequestInfo][] = [];
  const datagrams: [SocketAddress, Uint8Array][] = [];
  const state = { isOffered: true };
  let hear = (_data: Uint8Array, _from: SocketAddress) => {};
  let accept = (_connection: TcpConnection) => {};
  const control = new TunerControl({
    clock,
    log,
    tcp: {
      connect: () => Promise.reject(new Error("not needed")),
      listen: (at, onConnection) => {
        accept = onConnection;
        return Promise.resolve({ address: at, close: () => Promise.resolve() });
      },
    },
    udp: {
      bind: ({ host = "", port = 0 }) =>
        Promise.resolve({
          address: { host, port },
          onMessage: (handler) => void (hear = handler),
          send: (data, to) => Promise.resolve(void datagrams.push([to, data.slice()])),
          close: () => {},
        }),
    },
    network: {
      interfaces: () => [{ name: "eth0", host: "192.168.7.5", prefixLength: 24, family: 4 as const, loopback: false }],
      resolve: (host) => Promise.resolve([host]),
    },
    served: { host: null, port: 6878 },
    isOffered: () => state.isOffered,
    lineup: () => Promise.resolve([{ number: "5.1", title: "News" }]),
    ask: (one, info) => {
      asked.push([one.url, info]);
      return Promise.resolve(new Response(clip("ts-188.ts").slice()));
    },
  });
  /** A program at the control port. */
  const connect = (host = NEAR) => {
    const replies: string[] = [];
    const one = { isOver: false, replies, send: (_bytes: Uint8Array) => {} };
    let handlers: TcpHandlers | null = null;
    accept({
      local: { host: "192.168.7.5", port: 65_001 },
      remote: { host, port: 5000 },
      bufferedBytes: 0,
      open: (given) => void (handlers = given),
      write(bytes) {
        const packet = readPacket(bytes)!;
        assertEquals(packet.type, 5);
        replies.push(packet.values.map(([tag, value]) => `${tag}=${new TextDecoder().decode(value)}`).join(" "));
        return true;
      },
      pause() {},
      resume() {},
      end() {},
      abort() {
        if (one.isOver) return;
        one.isOver = true;
        handlers?.close();
      },
    });
    one.send = (bytes) => handlers!.data(bytes);
    return one;
  };
  return {
    clock,
    control,
    connect,
    asked,
    datagrams,
    state,
    hear: (from: string) => hear(new Uint8Array(4), { host: from, port: 1 }),
  };
}

test("TunerControl gets and sets variables, however the packets are cut", async () => {
  const { connect, control } = setUp();
  const one = connect();
  const bytes = concatBytes([request("/sys/model"), request("/tuner0/vchannel", "5.1"), request("/sys/none")]);
  for (const byte of bytes) {
    one.send(new Uint8Array([byte]));
    await settle();
  }
  one.send(bytes);
  await until("all are replied to", () => one.replies.length === 6);
  assertEquals(one.replies.slice(3), one.replies.slice(0, 3));
  assertEquals(one.replies.slice(0, 2), ["3=/sys/model\0 4=hdhomerun4_atsc\0", "3=/tuner0/vchannel\0 4=5.1\0"]);
  assert(/^5=ERROR: no variable/.test(one.replies[2]!), one.replies[2]);
  await control.close();
  assertEquals(one.isOver, true);
});

test("TunerControl serves machines of the local network alone, while others may use it", async () => {
  const { connect, state } = setUp();
  for (const host of ["10.0.0.1", "8.8.8.8", "127.0.0.1"]) assertEquals(connect(host).isOver, true, host);
  state.isOffered = false;
  assertEquals(connect().isOver, true);
  state.isOffered = true;
  const all = Array.from({ length: 10 }, () => connect());
  assertEquals(all.map(({ isOver }) => isOver), [...Array(8).fill(false), true, true]);
  await settle();
});

test("TunerControl leaves programs that send anything else, too much, or nothing", async () => {
  const { connect, clock } = setUp();
  const damaged = request("/sys/model");
  damaged[damaged.length - 1]! ^= 1;
  const others = [damaged, request("/x", undefined, 6), new Uint8Array([0, 4, 255, 255]), new Uint8Array(6000)];
  for (const bytes of others) {
    const one = connect();
    one.send(bytes);
    await settle();
    assertEquals([one.isOver, one.replies], [true, []]);
  }
  const eager = connect();
  for (let at = 0; at < 200 && !eager.isOver; at++) {
    eager.send(request("/sys/model"));
    await settle();
  }
  // The packets before count as well.
  assertEquals([eager.isOver, eager.replies.length], [true, 98]);
  const silent = connect();
  await clock.advanceAsync(61_000);
  assertEquals(silent.isOver, true);
});

test("TunerControl sends a channel in RTP, at its own speed, while its machine is there", async () => {
  const { connect, clock, control, asked, datagrams, hear } = setUp();
  const one = connect();
  one.send(request("/tuner0/vchannel", "5.1"));
  await settle();
  one.send(request("/tuner0/target", `rtp://${NEAR}:5000`));
  await until("the channel is asked for", () => asked.length === 1);
  assertEquals(asked.map(([url, info]) => [url, info.remote.host]), [["http://192.168.7.5:6878/auto/v5.1", NEAR]]);
  const bytes = clip("ts-188.ts");
  let halfway = 0;
  for (let second = 0; second < 8; second++) {
    hear(NEAR);
    for (let at = 0; at < 40; at++) await clock.advanceAsync(25);
    if (second === 2) halfway = datagrams.length;
  }
  const all = Math.floor(bytes.length / 1316);
  assert(datagrams.length >= all - 2 && datagrams.length <= all, `${datagrams.length} of ${all}`);
  assert(halfway > all * 0.3 && halfway < all * 0.8, `${halfway} of ${all} after three of six seconds`);
  assertEquals(
    new Set(datagrams.map(([to, data]) => `${to.host}:${to.port} ${data.length}`)),
    new Set([`${NEAR}:5000 1328`]),
  );
  const view = new DataView(datagrams[3]![1].buffer);
  assertEquals([view.getUint16(0), view.getUint16(2)], [0x8021, 3]);
  assertEquals(concatBytes(datagrams.map(([, data]) => data.subarray(12))), bytes.slice(0, datagrams.length * 1316));
  await control.close();
});
