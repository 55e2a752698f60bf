import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { InterfaceAddress, Logger, SocketAddress, UdpBindOptions } from "../../src/ports.ts";
import { readSearch, SsdpAnnouncer } from "../../src/upnp/announcer.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

const TYPE = "urn:schemas-upnp-org:device:MediaServer:1";
const DEVICE = {
  udn: "uuid:1",
  types: [TYPE],
  port: 6878,
  path: "/dlna/device.xml",
  host: "0.0.0.0",
  isOffered: () => true,
};
const SEARCH = { MAN: '"ssdp:discover"', MX: "2", ST: "ssdp:all" };

function search(fields: Record<string, string> = {}, first = "M-SEARCH * HTTP/1.1"): string {
  const all = Object.entries({ HOST: "239.255.255.250:1900", ...SEARCH, ...fields });
  return [first, ...all.map(([name, value]) => `${name}: ${value}`), "", ""].join("\r\n");
}
const address = (host: string, more: Partial<InterfaceAddress> = {}): InterfaceAddress => {
  return { name: "eth0", host, prefixLength: 24, family: 4, loopback: false, ...more };
};

/** A machine in local networks, and what its sockets send. */
class Machine {
  readonly clock = new FakeClock();
  readonly logged: string[] = [];
  readonly log: Logger = {
    log: (level, message, fields) => void this.logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
    child: () => this.log,
  };
  networks = [address("127.0.0.1", { loopback: true }), address("192.168.7.5"), address("fe80::1", { family: 6 })];
  readonly network = { interfaces: () => this.networks, resolve: (host: string) => Promise.resolve([host]) };
  readonly bound: UdpBindOptions[] = [];
  readonly open = new Map<string, (data: Uint8Array, from: SocketAddress) => void>();
  readonly sent: { own: string; to: string; text: string }[] = [];
  readonly udp = {
    bind: (options: UdpBindOptions) => {
      const own = options.multicastInterface!;
      this.bound.push(options);
      return Promise.resolve({
        address: { host: "0.0.0.0", port: 1900 },
        onMessage: (handler: (data: Uint8Array, from: SocketAddress) => void) => void this.open.set(own, handler),
        send: (data: Uint8Array, to: SocketAddress) =>
          Promise.resolve(
            void this.sent.push({ own, to: `${to.host}:${to.port}`, text: new TextDecoder().decode(data) }),
          ),
        close: () => void this.open.delete(own),
      });
    },
  };

  /** All sockets hear what `host` sends to the group. */
  hear(text: string, host = "192.168.7.9", port = 40_000): void {
    for (const handler of this.open.values()) handler(new TextEncoder().encode(text), { host, port });
  }
}

/** Lets a chain of promises come to its end. */
async function rest(): Promise<void> {
  for (let n = 0; n < 30; n++) await settle();
}

test("readSearch() takes searches that wait for answers, and nothing else", () => {
  assertEquals(readSearch(search()), { target: "ssdp:all", maxWaitMs: 2000 });
  const refused = [
    search({}, "NOTIFY * HTTP/1.1"),
    search({}, "HTTP/1.1 200 OK"),
    search({ MAN: "ssdp:discover" }),
    search({ MX: "" }),
    search({ MX: "-1" }),
    search({ ST: "" }),
    "",
    "\0",
  ];
  for (const text of refused) assertEquals(readSearch(text), null, text);
});

test("SsdpAnnouncer advertises the device in each local network, again after a while, and says goodbye", async () => {
  const machine = new Machine();
  const announcer = new SsdpAnnouncer(machine, DEVICE);
  await rest();
  assertEquals(machine.bound, [{ port: 1900, multicastGroup: "239.255.255.250", multicastInterface: "192.168.7.5" }]);
  const targets = ["uuid:1", "upnp:rootdevice", TYPE];
  const heard = machine.sent.map(({ text }) => /\r\nNT: (.*)\r\nNTS: ssdp:alive\r\nUSN: (.*)\r\n/.exec(text)!.slice(1));
  assertEquals(heard, targets.map((name) => [name, name === "uuid:1" ? name : `uuid:1::${name}`]));
  assert(machine.sent.every(({ to }) => to === "239.255.255.250:1900"));
  assertMatch(machine.sent[0]!.text, /\r\nLOCATION: http:\/\/192\.168\.7\.5:6878\/dlna\/device\.xml\r\n/);
  assertMatch(machine.sent[0]!.text, /\r\nCACHE-CONTROL: max-age=1800\r\n[^]*\r\n\r\n$/);

  machine.networks = [...machine.networks, address("10.0.0.2")];
  await machine.clock.advanceAsync(60_000);
  await rest();
  assertEquals(machine.sent.slice(3).map(({ own }) => own), ["10.0.0.2", "10.0.0.2", "10.0.0.2"]);
  machine.networks = machine.networks.filter(({ host }) => host !== "192.168.7.5");
  await machine.clock.advanceAsync(60_000);
  await rest();
  assertEquals([...machine.open.keys()], ["10.0.0.2"]);
  machine.sent.length = 0;
  await machine.clock.advanceAsync(600_000);
  await rest();
  assertEquals(machine.sent.length, 3);

  machine.sent.length = 0;
  await announcer.close();
  assertEquals(machine.sent.map(({ text }) => /\r\nNT: (.*)\r\nNTS: ssdp:byebye\r\n/.exec(text)![1]), targets);
  assertEquals([machine.open.size, machine.clock.pendingTimers], [0, 0]);
});

test("SsdpAnnouncer announces the device a minute after a fault of the engine, which is logged with its stack", async () => {
  const machine = new Machine();
  const { network } = machine;
  const broken = () => {
    throw new TypeError("object null is not iterable");
  };
  Object.assign(machine, { network: { ...network, interfaces: broken } });
  const announcer = new SsdpAnnouncer(machine, DEVICE);
  await rest();
  assertMatch(machine.logged.join(), /^error a fault of the engine.*TypeError: object null.*"stack":/);
  assertEquals(machine.sent, []);
  Object.assign(network, { interfaces: () => machine.networks });
  Object.assign(machine.network, network);
  await machine.clock.advanceAsync(60_000);
  await rest();
  assertEquals(machine.sent.length, 3);
  await announcer.close();
});

test("SsdpAnnouncer answers searches of its network within their time, and not more than it can bear", async () => {
  const machine = new Machine();
  machine.networks = [...machine.networks, address("10.0.0.2")];
  const announcer = new SsdpAnnouncer(machine, DEVICE);
  await rest();
  const answersTo = async (text: string, host?: string) => {
    machine.sent.length = 0;
    machine.hear(text, host);
    await machine.clock.advanceAsync(2000);
    return machine.sent.map(({ own, to, text }) => [own, to, /^HTTP\/1\.1 200 OK\r\nST: (.*)\r\n/.exec(text)?.[1]]);
  };
  assertEquals((await answersTo(search())).length, 3);
  assertEquals(await answersTo(search({ ST: TYPE })), [["192.168.7.5", "192.168.7.9:40000", TYPE]]);
  assertEquals(await answersTo(search({ ST: TYPE }), "10.0.0.9"), [["10.0.0.2", "10.0.0.9:40000", TYPE]]);
  for (const text of [search({ ST: "urn:other" }), search({ ST: "uuid:2" }), "x".repeat(5000)]) {
    assertEquals(await answersTo(text), []);
  }
  assertEquals(await answersTo(search(), "8.8.8.8"), [], "not of a local network");

  machine.sent.length = 0;
  for (let n = 0; n < 1000; n++) machine.hear(search(), "192.168.7.66");
  await machine.clock.advanceAsync(2000);
  assert(machine.sent.length <= 32, `${machine.sent.length} answers`);

  machine.sent.length = 0;
  for (let n = 0; n < 1000; n++) machine.hear(search(), "192.168.7.66");
  machine.hear(search({ ST: TYPE }));
  await machine.clock.advanceAsync(2000);
  assertEquals(machine.sent.filter(({ to }) => to === "192.168.7.9:40000").length, 1, "not shut out by another");

  await machine.clock.advanceAsync(10_000);
  machine.sent.length = 0;
  for (let n = 0; n < 200; n++) machine.hear(search({ ST: TYPE }), `192.168.7.${n + 20}`);
  await machine.clock.advanceAsync(2000);
  assert(machine.sent.length < 200, `${machine.sent.length} answers to searches of all machines together`);
  machine.hear(search());
  await announcer.close();
  assertEquals(machine.clock.pendingTimers, 0);
});

test("SsdpAnnouncer stays in the network of the one address that the engine listens on", async () => {
  const machine = new Machine();
  machine.networks = [...machine.networks, address("10.0.0.2")];
  const announcer = new SsdpAnnouncer(machine, { ...DEVICE, host: "10.0.0.2" });
  await rest();
  assertEquals([...machine.open.keys()], ["10.0.0.2"]);
  await announcer.close();
});

test("SsdpAnnouncer says goodbye when nobody may use the device any more, and announces it again later", async () => {
  const machine = new Machine();
  let isOffered = false;
  const announcer = new SsdpAnnouncer(machine, { ...DEVICE, isOffered: () => isOffered });
  await rest();
  machine.hear(search());
  const kinds = async () => {
    await machine.clock.advanceAsync(60_000);
    await rest();
    return new Set(machine.sent.splice(0).map(({ text }) => /NTS: (.*)|^HTTP/m.exec(text)![1]));
  };
  assertEquals(await kinds(), new Set());
  isOffered = true;
  assertEquals(await kinds(), new Set(["ssdp:alive"]));
  isOffered = false;
  machine.hear(search());
  assertEquals(await kinds(), new Set(["ssdp:byebye"]));
  assertEquals(await kinds(), new Set());
  await announcer.close();
  assertEquals(machine.sent, []);
});

test("SsdpAnnouncer of an engine that listens on both families advertises it over IPv6, and answers there", async () => {
  const machine = new Machine();
  const v6 = (host: string) => address(host, { family: 6, prefixLength: 64 });
  machine.networks = [address("192.168.7.5"), v6("fe80::1"), v6("fd00:7::5"), v6("2a02:26f7:77::5")];
  const announcer = new SsdpAnnouncer(machine, { ...DEVICE, host: "::" });
  await rest();
  const groups = ["ff02::c", "ff05::c", "ff0e::c"];
  assertEquals(machine.bound, [
    { port: 1900, multicastGroup: "239.255.255.250", multicastInterface: "192.168.7.5" },
    { port: 1900, host: "::", multicastGroup: groups, multicastInterface: "::%eth0" },
  ]);
  const over6 = machine.sent.filter(({ own }) => own === "::%eth0");
  assertEquals(over6.map(({ to }) => to), groups.flatMap((group) => Array(3).fill(`${group}:1900`)));
  for (const { text } of over6) {
    assertMatch(text, /\r\nHOST: \[ff0.::c\]:1900\r\n[^]*LOCATION: http:\/\/\[2a02:26f7:77::5\]:6878\//);
  }
  machine.sent.length = 0;
  for (const from of ["fe80::9%eth0", "fe80::9%eth1", "2a02:26f7:77::9", "2a02:26f7:78::9", "192.168.7.9"]) {
    machine.hear(search({ ST: TYPE }), from);
  }
  await machine.clock.advanceAsync(2000);
  assertEquals(machine.sent.map(({ own, to }) => `${own} to ${to}`).sort(), [
    "192.168.7.5 to 192.168.7.9:40000",
    "::%eth0 to 2a02:26f7:77::9:40000",
    "::%eth0 to fe80::9%eth0:40000",
  ]);
  await announcer.close();
});
