import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { SocketAddress, UdpSocket } from "../../src/ports.ts";
import { deferred, ports, turns } from "./support.ts";
import { run } from "../support/process.ts";
import { noise } from "../support/random.ts";

interface Datagram {
  readonly data: Uint8Array;
  readonly from: SocketAddress;
}

function next(socket: UdpSocket, wanted: (data: Uint8Array) => boolean = () => true): Promise<Datagram> {
  const got = deferred<Datagram>("a datagram");
  socket.onMessage((data, from) => {
    if (wanted(data)) got.resolve({ data, from });
  });
  return got.promise;
}

test("UdpPort.bind() and UdpSocket.send() carry datagrams with their sender's address", async () => {
  const a = await ports.udp.bind({ host: "127.0.0.1" });
  const b = await ports.udp.bind({ host: "127.0.0.1" });
  assert(a.address.port > 0 && a.address.port !== b.address.port);
  const atB = next(b);
  const payload = noise(1400);
  await a.send(payload, b.address);
  const { data, from } = await atB;
  assertEquals(data, payload);
  assertEquals(from, { host: "127.0.0.1", port: a.address.port });
  const atA = next(a);
  await b.send(new Uint8Array([1]), from);
  assertEquals((await atA).data, new Uint8Array([1]));
  a.close();
  b.close();
  b.close();
  await a.send(payload, b.address);
});

test("UdpSocket.send() keeps the order of datagrams, and close() ends what waits", async () => {
  const a = await ports.udp.bind({ host: "127.0.0.1" });
  const b = await ports.udp.bind({ host: "127.0.0.1" });
  const numbers: number[] = [];
  const all = deferred<void>("fifty datagrams");
  b.onMessage(([number]) => {
    if (numbers.push(number!) === 50) all.resolve();
  });
  await Promise.all(Array.from({ length: 50 }, (_, i) => a.send(new Uint8Array([i]), b.address)));
  await all.promise;
  assertEquals(numbers, Array.from({ length: 50 }, (_, i) => i));
  const waiting = Array.from({ length: 50 }, () => a.send(new Uint8Array(1), b.address));
  a.close();
  await Promise.all(waiting);
  b.close();
});

for (const receiveBufferBytes of [undefined, 4 * 1024 * 1024]) {
  test(`UdpPort.bind() at :: reaches both families, and knows IPv4 senders by their own address: buffer ${receiveBufferBytes}`, async () => {
    const both = await ports.udp.bind({
      host: "::",
      ...(receiveBufferBytes === undefined ? {} : { receiveBufferBytes }),
    });
    for (const host of ["127.0.0.1", "::1"]) {
      const other = await ports.udp.bind({ host });
      const atBoth = next(both, (data) => data.length === host.length);
      // In a burst, so that what takes datagrams faster than the runtime has a part in it.
      for (let i = 0; i < 3; i++) await other.send(new Uint8Array(host.length), { host, port: both.address.port });
      assertEquals((await atBoth).from, { host, port: other.address.port });
      const atOther = next(other);
      await both.send(new Uint8Array([1]), other.address);
      assertEquals((await atOther).from, { host, port: both.address.port });
      other.close();
    }
    both.close();
  });
}

test("UdpPort.bind() lets the kernel keep more unread datagrams than usual when asked", async () => {
  if (ports.runtime.platform !== "linux") return;
  const usual = await ports.udp.bind({ host: "127.0.0.1" });
  const larger = await ports.udp.bind({ host: "127.0.0.1", receiveBufferBytes: 4 * 1024 * 1024 });
  const [usualBytes, largerBytes] = await Promise.all([usual, larger].map(async (socket) => {
    // What a runtime says about its own socket need not be so.
    const { text, stderr } = await run("ss", ["-uanmH", `sport = :${socket.address.port}`]);
    return Number(/rb(\d+)/.exec(text)?.[1] ?? assert(false, text + stderr));
  }));
  // Linux grants twice what may be asked for, net.core.rmem_max; that is the usual size, or more.
  assert(largerBytes! > usualBytes!, `${largerBytes} bytes instead of ${usualBytes}`);
  assertEquals([usual.receiveBufferBytes ?? usualBytes, larger.receiveBufferBytes], [usualBytes, largerBytes]);
  usual.close();
  larger.close();
});

for (const host of ["127.0.0.1", "::1"]) {
  test(`UdpSocket.onMessage() gets bursts in order, with their sender, when a large buffer was asked for: ${host}`, async () => {
    const socket = await ports.udp.bind({ host, receiveBufferBytes: 4 * 1024 * 1024 });
    const sender = await ports.udp.bind({ host });
    const numbers: number[] = [];
    const strange: unknown[] = [];
    let seen = 0;
    let come = deferred("a burst");
    socket.onMessage((data, from) => {
      const text = new TextDecoder().decode(data);
      numbers.push(Number(text));
      if (from.host !== host || from.port !== sender.address.port) strange.push(from);
      if (numbers.length % 100 === 0) come.resolve();
    });
    socket.onMessage(() => seen++);
    for (let burst = 0; burst < 10; burst++) {
      come = deferred("a burst");
      // One after the other: runtimes may change the order of those sent at once.
      for (let n = 0; n < 100; n++) {
        await sender.send(new TextEncoder().encode(String(burst * 100 + n)), socket.address);
      }
      await come.promise;
    }
    assertEquals(numbers, Array.from({ length: 1000 }, (_, n) => n));
    assertEquals([strange, seen], [[], 1000]);
    socket.close();
    sender.close();
  });
}

test("UdpSocket.close() ends the messages, even between those of a burst", async () => {
  const socket = await ports.udp.bind({ host: "127.0.0.1", receiveBufferBytes: 4 * 1024 * 1024 });
  const sender = await ports.udp.bind({ host: "127.0.0.1" });
  let got = 0;
  const first = deferred("the first datagram");
  socket.onMessage(() => {
    got++;
    socket.close();
    first.resolve();
  });
  await Promise.all(Array.from({ length: 20 }, () => sender.send(new Uint8Array(10), socket.address)));
  await first.promise;
  await turns(3);
  assertEquals(got, 1);
  sender.close();
});

test("UdpPort.bind() rejects with conflict when the port is taken", async () => {
  const socket = await ports.udp.bind({ host: "127.0.0.1" });
  const error = await assertRejects(() => ports.udp.bind(socket.address), MillraceError);
  assertEquals(error.code, "conflict");
  socket.close();
});

test("UdpSocket.send() resolves for datagrams that the network cannot deliver", async () => {
  const socket = await ports.udp.bind({ host: "127.0.0.1" });
  const gone = await ports.udp.bind({ host: "127.0.0.1" });
  gone.close();
  for (let i = 0; i < 3; i++) await socket.send(new Uint8Array(10), gone.address);
  await socket.send(new Uint8Array(10), { host: "255.255.255.255", port: 9 });
  await socket.send(new Uint8Array(70_000), gone.address);
  const self = next(socket);
  await socket.send(new Uint8Array([7]), socket.address);
  assertEquals((await self).data[0], 7);
  socket.close();
});

test("UdpPort.bind() and UdpSocket.send() take a name as well as an address", async () => {
  const a = await ports.udp.bind({ host: "localhost" });
  const b = await ports.udp.bind({ host: "127.0.0.1" });
  assertEquals(a.address.host, "127.0.0.1");
  const atB = next(b);
  await a.send(new Uint8Array([5]), { host: "localhost", port: b.address.port });
  assertEquals((await atB).data, new Uint8Array([5]));
  a.close();
  b.close();
});

test("UdpPort.bind() joins several groups with one socket", async () => {
  const groups = ["239.192.152.143", "239.192.152.144"];
  const socket = await ports.udp.bind({ multicastGroup: groups, multicastInterface: "127.0.0.1" });
  const tokens = groups.map(() => crypto.getRandomValues(new Uint8Array(16)));
  const isToken = (n: number) => (data: Uint8Array) => data.join() === tokens[n]!.join();
  const heard = [next(socket, isToken(0)), next(socket, isToken(1))];
  for (const [n, host] of groups.entries()) await socket.send(tokens[n]!, { host, port: socket.address.port });
  await Promise.all(heard);
  socket.close();
});

test("UdpPort.bind() with a group lets several sockets on one port hear multicast, the sender included", async () => {
  const group = "239.192.152.143";
  const options = { multicastGroup: group, multicastInterface: "127.0.0.1" };
  const first = await ports.udp.bind(options);
  const second = await ports.udp.bind({ ...options, port: first.address.port });
  // The port is a free one, yet another program might speak to the group: only the token counts.
  const token = crypto.getRandomValues(new Uint8Array(16));
  const isOurs = (data: Uint8Array) => data.length === 16 && data.every((byte, i) => byte === token[i]);
  const heard = [next(first, isOurs), next(second, isOurs)];
  await first.send(token, { host: group, port: first.address.port });
  for (const { from } of await Promise.all(heard)) assertEquals(from.port, first.address.port);
  first.close();
  second.close();
});
