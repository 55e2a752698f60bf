/** Multicast DNS: what strangers send is read within bounds, and what vanishes is forgotten. */
import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { type DnsMessage, type DnsRecord, nameKey, readMessage, writeMessage } from "../../src/players/mdns/message.ts";
import { MulticastDns } from "../../src/players/mdns/multicast-dns.ts";
import { ServiceResponder } from "../../src/players/mdns/responder.ts";
import { ServiceBrowser } from "../../src/players/mdns/service-browser.ts";
import type { SocketAddress, UdpBindOptions } from "../../src/ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { noise } from "../support/random.ts";
import { cpuMs } from "../support/cpu-time.ts";

const TYPE = ["_googlecast", "_tcp", "local"];
const utf8 = (text: string) => new TextEncoder().encode(text);

/** The records of a device with this name. */
function records(name: string, { ttlSeconds = 120, port = 8009 } = {}): DnsRecord[] {
  const instance = [name, ...TYPE];
  const target = ["device", "local"];
  return [
    { type: "PTR", name: TYPE, ttlSeconds, isUnique: false, target: instance },
    { type: "SRV", name: instance, ttlSeconds, isUnique: true, port, target },
    {
      type: "TXT",
      name: instance,
      ttlSeconds,
      isUnique: true,
      strings: [utf8(`fn=${name}`), utf8("FN=2"), utf8("ca")],
    },
    { type: "A", name: target, ttlSeconds, isUnique: true, address: "192.168.7.9" },
  ];
}
const response = (all: readonly DnsRecord[]): DnsMessage => ({ id: 0, isResponse: true, questions: [], records: all });

test("readMessage() reads what writeMessage() wrote, labels with dots and other letters included", () => {
  const message: DnsMessage = {
    id: 77,
    isResponse: true,
    questions: [{ name: TYPE, type: 12 }],
    records: records("Küche 2.0"),
  };
  assertEquals(readMessage(writeMessage(message)), message);
  assertEquals(nameKey(["ABC", "ö.Ö"]), "abc\0ö.Ö");
  for (const name of [["x".repeat(64)], ["a", "", "b"], Array(5).fill("y".repeat(60))]) {
    const questions = [{ name, type: 12 }];
    assertThrows(() => writeMessage({ id: 0, isResponse: false, questions, records: [] }), RangeError);
  }
});

/** A response header with one record, and the record's name and data. */
function crafted(name: number[], type: number, data: number[], length = data.length): Uint8Array {
  const header = [0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0];
  return new Uint8Array([...header, ...name, 0, type, 0x80, 1, 0, 0, 0, 120, length >> 8, length & 255, ...data]);
}

test("readMessage() follows compressed names only backwards, so that it terminates, and reads nothing beyond the message", () => {
  const compressed = crafted([1, 97, 0], 12, [1, 98, 0xc0, 12]);
  assertEquals(readMessage(compressed)?.records[0], {
    type: "PTR",
    name: ["a"],
    target: ["b", "a"],
    ttlSeconds: 120,
    isUnique: true,
  });
  const label = [63, ...Array(63).fill(97)];
  const refused: Record<string, Uint8Array> = {
    "a pointer to itself": crafted([0xc0, 12], 12, [0]),
    "two pointers in a circle": crafted([1, 97, 0xc0, 16, 0xc0, 12], 12, [0]),
    "a pointer forward": crafted([0xc0, 30], 12, [0]),
    "a label of a reserved kind": crafted([0x80, 0], 12, [0]),
    "a name of more than 255 bytes": crafted([...label, ...label, ...label, ...label, 0], 12, [0]),
    "a label beyond the end": crafted([0], 12, [60, 97]),
    "data beyond the end": crafted([0], 16, [1, 97], 40),
    "a name longer than its data": crafted([0], 12, [1, 97, 0], 2),
    "a string beyond its data": crafted([0], 16, [9, 97, 98]),
    "129 records": writeMessage(response(Array(129).fill(records("a")[3]))),
    "an error": new Uint8Array([0, 0, 0x84, 3, 0, 0, 0, 0, 0, 0, 0, 0]),
    "another opcode": new Uint8Array([0, 0, 0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    "half a header": new Uint8Array(7),
    "9001 bytes": new Uint8Array(9001),
  };
  for (const [what, bytes] of Object.entries(refused)) assertEquals(readMessage(bytes), null, what);
  assertEquals(readMessage(crafted([0], 1, [1, 2, 3]))?.records, [], "an address of three bytes");
});

test("readMessage() refuses names that together have far more labels than services have", () => {
  /** A message of `count` questions, all about one name of 126 labels. */
  const message = (count: number) => {
    const questions = Array.from({ length: count - 1 }, () => [0xc0, 12, 0, 12, 0, 1]).flat();
    const name = Array.from({ length: 126 }, () => [1, 65]).flat();
    return new Uint8Array([0, 0, 0, 0, 0, count, 0, 0, 0, 0, 0, 0, ...name, 0, 0, 12, 0, 1, ...questions]);
  };
  assertEquals(readMessage(message(8))?.questions.length, 8);
  assertEquals(readMessage(message(9)), null);
});

test("readMessage() survives 20,000 damaged messages without an error of its own, in bounded time each", () => {
  const whole = writeMessage(response([...records("One"), ...records("Two")]));
  const random = noise(200_000);
  let read = 0;
  for (let round = 0, r = 0; round < 20_000; round++) {
    const bytes = whole.slice(0, round % 5 === 0 ? random[r++]! : undefined);
    for (let i = 0; i <= round % 4; i++) bytes[(random[r++]! * 256 + random[r++]!) % bytes.length] = random[r++]!;
    const startedMs = cpuMs();
    if (readMessage(bytes) !== null) read++;
    assert(cpuMs() - startedMs < 1000);
    r %= 190_000;
  }
  assert(read > 1000 && read < 20_000, `${read} were still readable`);
});

/** A machine at 192.168.7.5: what it sends, and a way to send to it. */
function machine(taken5353 = false) {
  const clock = new FakeClock();
  const sent: DnsMessage[] = [];
  const bound: UdpBindOptions[] = [];
  const handlers = new Set<(data: Uint8Array, from: SocketAddress) => void>();
  const ports = {
    clock,
    log: silent,
    network: {
      resolve: (host: string) => Promise.resolve([host]),
      interfaces: () => [{ name: "eth0", host: "192.168.7.5", prefixLength: 24, family: 4 as const, loopback: false }],
    },
    udp: {
      bind: (options: UdpBindOptions) => {
        if (taken5353 && options.port === 5353) return Promise.reject(new Error("taken"));
        bound.push(options);
        let handler: ((data: Uint8Array, from: SocketAddress) => void) | null = null;
        return Promise.resolve({
          address: { host: "0.0.0.0", port: options.port ?? 40_000 },
          onMessage: (given: (data: Uint8Array, from: SocketAddress) => void) => void handlers.add(handler = given),
          send: (data: Uint8Array) => Promise.resolve(void sent.push(readMessage(data)!)),
          close: () => void handlers.delete(handler!),
        });
      },
    },
  };
  const hear = (all: readonly DnsRecord[], host = "192.168.7.9", port = 5353) => {
    for (const handler of handlers) handler(writeMessage(response(all)), { host, port });
  };
  const browser = new ServiceBrowser(ports, new MulticastDns(ports), "_googlecast._tcp");
  /** Time goes by, and promises settle. */
  const pass = async (ms: number) => {
    await clock.advanceAsync(ms);
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  /** The result of a search during which `answer` runs. */
  const list = async (answer: () => void) => {
    const listed = browser.list();
    await pass(0);
    answer();
    await pass(250);
    await pass(950);
    return (await listed).map(({ instance, host }) => `${instance}@${host}`);
  };
  /** Delivers a question from `host`; `known`: records that the asker has already. */
  const ask = (name: readonly string[], type: number, { port = 5353, known = [] as DnsRecord[] } = {}) => {
    const message = { id: 7, isResponse: false, questions: [{ name, type }], records: known };
    for (const handler of handlers) handler(writeMessage(message), { host: "192.168.7.9", port });
  };
  return { clock, sent, bound, handlers, hear, browser, list, pass, ask, ports };
}

test("ServiceBrowser asks twice, asks again for missing records, and lists services that are fully known", async () => {
  const { clock, sent, bound, hear, browser, pass } = machine();
  assertEquals(sent.length, 0, "nobody asked");
  const listing = browser.list();
  await pass(0);
  assertEquals(bound, [{ port: 5353, multicastGroup: "224.0.0.251", multicastInterface: "192.168.7.5" }]);
  assertEquals(sent[0]!.questions, [{ name: TYPE, type: 12 }]);
  const [pointer, ...rest] = records("TV.1");
  hear([pointer!]);
  await pass(250);
  assertEquals(sent[1]!.questions, [{ name: TYPE, type: 12 }, { name: ["TV.1", ...TYPE], type: 255 }]);
  hear(rest);
  await pass(950);
  const facts = new Map([["fn", "TV.1"], ["ca", ""]]);
  assertEquals(await listing, [{ instance: "TV.1", host: "192.168.7.9", port: 8009, facts }]);
  browser.close();
  assertEquals(clock.pendingTimers, 0);
});

test("ServiceBrowser ignores answers from other networks, about other machines, and too many from one machine", async () => {
  const { hear, list, handlers, browser, pass } = machine();
  const listed = await list(() => {
    hear(records("Far"), "8.8.8.8");
    hear(records("Odd port"), "192.168.7.9", 40_000);
    hear(records("TV"));
    hear(records("TV", { ttlSeconds: 0 }), "192.168.7.66");
    hear(records("No port", { port: 0 }));
    for (let n = 0; n < 50; n++) hear(records(`Loud ${n}`), "192.168.7.66");
  });
  assertEquals([listed[0], listed.length], ["TV@192.168.7.9", 9]);
  for (let host = 10; host < 60; host++) {
    for (let n = 0; n < 4; n++) hear(records(`N${n}`), `192.168.7.${host}`);
  }
  await pass(1000);
  assert((await browser.list()).length <= 64);
  browser.close();
  assertEquals(handlers.size, 0);
});

test("ServiceBrowser forgets a service at once on goodbye, within a minute of silence, and closes its sockets when unused", async () => {
  const { clock, sent, hear, list, handlers, browser, pass } = machine();
  const listed = await list(() => {
    hear(records("Stays", { ttlSeconds: 4500 }));
    hear(records("Leaves"));
    hear(records("Short", { ttlSeconds: 10 }));
  });
  assertEquals(listed, ["Stays@192.168.7.9", "Leaves@192.168.7.9", "Short@192.168.7.9"]);
  hear(records("Leaves", { ttlSeconds: 0 }));
  await pass(9000);
  const now = async () => (await browser.list()).map(({ instance }) => instance);
  assertEquals([await now(), sent.length], [["Stays"], 2], "from memory, without a search");
  await pass(20_000);
  assertEquals(await now(), ["Stays"]);
  await pass(0);
  assertEquals(sent.length, 3, "the list is renewed behind the asker's back");
  await pass(15_000);
  assertEquals(await now(), [], "45 s after it was last heard");
  assertEquals(handlers.size, 1);
  await pass(60_000);
  assertEquals([handlers.size, clock.pendingTimers], [0, 0]);
  assertEquals(await list(() => hear(records("Back"))), ["Back@192.168.7.9"]);
  browser.close();
  assertEquals(await browser.list(), []);
});

test("MulticastDns bounds the messages read from one machine, and searches from another port when 5353 is taken", async () => {
  const { bound, hear, browser, pass } = machine(true);
  const listing = browser.list();
  await pass(0);
  assertEquals(bound.map(({ port }) => port), [undefined]);
  for (let n = 0; n < 200; n++) hear([], "192.168.7.66");
  hear(records("Too late"), "192.168.7.66");
  hear(records("TV"));
  await pass(250);
  await pass(950);
  assertEquals((await listing).map(({ instance }) => instance), ["TV"]);
  browser.close();
});

test("MulticastDns bounds the messages read from all machines together: one may use many addresses", async () => {
  const { hear, list, browser, pass } = machine();
  const found = await list(() => {
    for (let n = 0; n < 200; n++) hear(n === 199 ? records("Too late") : [], `192.168.7.${n + 20}`);
  });
  assertEquals(found, []);
  await pass(50_000);
  assertEquals(await list(() => hear(records("TV"))), ["TV@192.168.7.9"]);
  browser.close();
});

test("ServiceResponder announces twice, answers queries for it at most once per second, and says goodbye", async () => {
  const { ports, clock, sent, ask, pass, handlers } = machine();
  let isOffered = true;
  const dns = new MulticastDns(ports);
  const service = {
    instance: "Study 1a",
    type: "_millrace._tcp",
    hostLabel: "millrace-1a",
    port: 6878,
    facts: () => ["k=v"],
  };
  const responder = new ServiceResponder(dns, ports, service, () => Promise.resolve(isOffered));
  const count = async (ms: number) => {
    await pass(ms);
    return sent.splice(0).length;
  };
  void responder.open();
  await pass(0);
  const [announced] = sent;
  const instance = ["Study 1a", "_millrace", "_tcp", "local"];
  const [pointer, server, text, address] = announced!.records as [DnsRecord, DnsRecord, DnsRecord, DnsRecord];
  assertEquals([pointer.type === "PTR" && pointer.target, pointer.ttlSeconds], [instance, 120]);
  assertEquals([server.type === "SRV" && server.port, text.isUnique], [6878, true]);
  assertEquals(address.type === "A" && address.address, "192.168.7.5");
  assertEquals(await count(1000), 2);

  await pass(1000);
  const type = instance.slice(1);
  const asked: [readonly string[], number, number][] = [
    [type, 12, 1],
    [["_MILLRACE", "_tcp", "local"], 255, 1],
    [instance, 33, 1],
    [["millrace-1a", "local"], 1, 1],
    [["_services", "_dns-sd", "_udp", "local"], 12, 1],
    [type, 33, 0],
    [["_googlecast", "_tcp", "local"], 12, 0],
    [["other", "local"], 255, 0],
  ];
  for (const [name, kind, answers] of asked) {
    for (let n = 0; n < 20; n++) ask(name, kind);
    assertEquals(await count(150), answers, name.join("."));
    await pass(1000);
  }
  ask(type, 12, { known: [pointer] });
  assertEquals(await count(1500), 0, "the asker knows it");
  ask(type, 12);
  await pass(150);
  ask(type, 12);
  assertEquals(await count(500), 1);
  assertEquals(await count(700), 1, "a second later");

  ask(type, 12, { port: 40_000 });
  ask(type, 12, { port: 40_000 });
  await pass(0);
  assertEquals(sent.map(({ id, questions, records }) => [id, questions.length, records[0]!.ttlSeconds]), [[7, 1, 10]]);
  sent.length = 0;
  isOffered = false;
  ask(type, 12);
  assertEquals(await count(1500), 0, "not in this network, or not now");
  await responder.close();
  assertEquals([sent.length, sent[0]!.records[0]!.ttlSeconds], [1, 0]);
  assertEquals([clock.pendingTimers, handlers.size], [0, 0]);
});
