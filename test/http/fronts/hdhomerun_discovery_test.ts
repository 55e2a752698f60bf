/** Programs that look for the tuner: messages as libhdhomerun writes and reads them. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { TunerDiscovery } from "../../../src/http/fronts/hdhomerun/discovery.ts";
import { looksForTuner, tunerFound } from "../../../src/http/fronts/hdhomerun/messages.ts";
import { crc32Ethernet } from "../../../src/http/fronts/hdhomerun/packets.ts";
import type { SocketAddress } from "../../../src/ports.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

const ID = 0x1234567a;
/** Tuners of any id: what Jellyfin sends. */
const ANY = [1, 4, 0, 0, 0, 1, 2, 4, 255, 255, 255, 255];
const log = { log: () => {}, child: () => log };

function search(payload: readonly number[], type = 2): Uint8Array {
  const head = [0, type, 0, payload.length, ...payload];
  const checksum = new DataView(new ArrayBuffer(4));
  checksum.setUint32(0, crc32Ethernet(new Uint8Array(head)), true);
  return new Uint8Array([...head, ...new Uint8Array(checksum.buffer)]);
}

test("crc32Ethernet() is the checksum of IEEE 802.3", () => {
  assertEquals(crc32Ethernet(new TextEncoder().encode("123456789")), 0xcbf43926);
});

test("looksForTuner() takes searches for tuners of this id or any, and nothing else", () => {
  const cases: [boolean, Uint8Array][] = [
    [true, search(ANY)],
    [true, search([1, 4, 255, 255, 255, 255, 2, 4, 0x12, 0x34, 0x56, 0x7a])],
    [true, search([0x2d, 8, 0, 0, 0, 5, 0, 0, 0, 1])],
    [true, search([])],
    [false, search([1, 4, 0, 0, 0, 5])],
    [false, search([2, 4, 0x12, 0x34, 0x56, 0x7b])],
    [false, search(ANY, 3)],
    [false, search([1, 200])],
    [false, search(ANY).fill(0, -1)],
    [false, search(ANY).slice(0, -1)],
    [false, new Uint8Array()],
  ];
  for (const [expected, datagram] of cases) assertEquals(looksForTuner(datagram, ID), expected, datagram.toString());
});

test("TunerDiscovery() names the address in the searcher's network, a few times a second", async () => {
  const clock = new FakeClock();
  const sent: [to: string, text: string][] = [];
  let hear = (_data: Uint8Array, _from: SocketAddress) => {};
  let isOffered = true;
  const udp = {
    bind: ({ port }: { port?: number }) =>
      Promise.resolve({
        address: { host: "0.0.0.0", port: port! },
        onMessage: (handler: typeof hear) => void (hear = handler),
        send: (data: Uint8Array, { host }: SocketAddress) =>
          Promise.resolve(void sent.push([host, new TextDecoder().decode(data)])),
        close: () => void (hear = () => {}),
      }),
  };
  const network = {
    interfaces: () => [{ name: "eth0", host: "192.168.7.5", prefixLength: 24, family: 4 as const, loopback: false }],
    resolve: (host: string) => Promise.resolve([host]),
  };
  const served = { host: null, port: 6878 };
  const discovery = new TunerDiscovery({
    udp,
    network,
    clock,
    log,
    id: "1234567A",
    served,
    isOffered: () => isOffered,
  });
  await settle();
  const from = (host: string) => hear(search(ANY), { host, port: 5000 });
  from("192.168.7.9");
  from("10.0.0.1");
  isOffered = false;
  from("192.168.7.9");
  isOffered = true;
  assertEquals(sent.map(([to]) => to), ["192.168.7.9"]);
  assertEquals(sent[0]![1].includes("http://192.168.7.5:6878/lineup.json"), true);
  for (let i = 0; i < 100; i++) from("192.168.7.9");
  assertEquals(sent.length, 20);
  await discovery.close();
});

test("tunerFound() writes a reply that its own reader's checksum holds for", () => {
  const reply = tunerFound({ id: ID, tuners: 8, baseUrl: `http://${"x".repeat(200)}` });
  const end = reply.length - 4;
  const view = new DataView(reply.buffer);
  assertEquals([view.getUint16(0), view.getUint16(2)], [3, end - 4]);
  assertEquals(view.getUint32(end, true), crc32Ethernet(reply.subarray(0, end)));
  assertEquals([...reply.subarray(4, 10)], [1, 4, 0, 0, 0, 1]);
});
