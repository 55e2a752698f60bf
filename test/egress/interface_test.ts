import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { boundTcp } from "../../src/egress/bound-tcp.ts";
import { boundUdp } from "../../src/egress/bound-udp.ts";
import { InterfaceWatch } from "../../src/egress/interface-watch.ts";
import { MillraceError } from "../../src/errors.ts";
import type { InterfaceAddress, TcpConnection } from "../../src/ports.ts";
import { deferred, Recorder, soon } from "../contract/support.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

const address = (name: string, host: string): InterfaceAddress => ({
  name,
  host,
  prefixLength: 8,
  family: host.includes(":") ? 6 : 4,
  loopback: false,
});
const CARD = [address("lan0", "127.0.0.5"), address("vpn0", "fe80::1"), address("vpn0", "127.0.0.6")];
const GONE = CARD.slice(0, 1);

/** A machine whose `vpn0` comes and goes. */
async function machine() {
  const ports = await loadPorts({ log: { level: "error" } });
  const clock = new FakeClock();
  const logged: string[] = [];
  const log = { log: (_level: string, message: string) => void logged.push(message), child: () => log };
  let interfaces = CARD;
  const watch = new InterfaceWatch({ network: { interfaces: () => interfaces }, clock, log }, "vpn0");
  const change = (now: typeof CARD) => {
    interfaces = now;
    clock.advance(1001);
  };
  return { ports, watch, logged, change };
}

test("InterfaceWatch finds the addresses of a name, and says when they go and come back", async () => {
  const { watch, logged, change } = await machine();
  assertEquals(watch.addresses(), { ipv4: "127.0.0.6", ipv6: null });
  assertEquals([watch.addressFor("1.2.3.4"), watch.trouble, logged], ["127.0.0.6", null, []]);
  assertThrows(() => watch.addressFor("2001:db8::1"), MillraceError, "no address of the family");
  change(GONE);
  assertThrows(() => watch.addressFor("1.2.3.4"), MillraceError, "is away");
  change(CARD);
  assertEquals(logged.length, 2);
  watch.close();
});

test("boundTcp() connects from the interface, ends its connections when it goes, and listens again when it is back", async () => {
  const { ports, watch, change } = await machine();
  const network = { resolve: () => Promise.resolve(["127.0.0.1"]) };
  const tcp = boundTcp({ tcp: ports.tcp, network, watch });
  const accepted: TcpConnection[] = [];
  const target = await ports.tcp.listen({ host: "127.0.0.1", port: 0 }, (connection) => {
    connection.open(new Recorder());
    accepted.push(connection);
  });
  const own = await tcp.listen({ host: "0.0.0.0", port: 0 }, (connection) => connection.open(new Recorder()));
  assertEquals(own.address.host, "127.0.0.6");
  const { port } = own.address;
  const connection = await tcp.connect({ host: "name.test", port: target.address.port }, { signal: soon() });
  const recorder = new Recorder();
  connection.open(recorder);
  await until("it is taken", () => accepted.length === 1);
  assertEquals(accepted[0]!.remote.host, "127.0.0.6");
  accepted[0]!.write(new Uint8Array(100_000));
  await recorder.has(100_000);
  change(GONE);
  await recorder.closed.promise;
  const refused = await tcp.connect(target.address, { signal: soon() }).catch((error) => error);
  assertEquals(refused.code, "unavailable");
  await until("it is closed", () => own.address.host === "0.0.0.0");
  change(CARD);
  await until("it listens again", () => own.address.host === "127.0.0.6");
  const again = await ports.tcp.connect({ host: "127.0.0.6", port }, { signal: soon() });
  again.open(new Recorder());
  again.abort();
  await own.close();
  await target.close();
  watch.close();
});

test("boundUdp() sends from the interface alone, and again from its port when it is back", async () => {
  const { ports, watch, change } = await machine();
  const far = await ports.udp.bind({ host: "127.0.0.1" });
  const senders: string[] = [];
  let heard = deferred("a datagram");
  far.onMessage((_data, from) => {
    senders.push(`${from.host}:${from.port}`);
    heard.resolve();
  });
  const socket = await boundUdp(ports.udp, watch).bind({});
  const first = `${socket.address.host}:${socket.address.port}`;
  await socket.send(Uint8Array.of(1), far.address);
  await heard.promise;
  change(GONE);
  await until("it is closed", () => socket.address.host === "0.0.0.0");
  await socket.send(Uint8Array.of(2), far.address);
  assertEquals(socket.trouble !== null, true);
  change(CARD);
  await until("it is open again", () => socket.address.host === "127.0.0.6");
  heard = deferred("a datagram");
  await socket.send(Uint8Array.of(3), far.address);
  await heard.promise;
  assertEquals(senders, [first, first]);
  socket.close();
  far.close();
  watch.close();
});
