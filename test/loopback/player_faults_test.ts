/** Faults of the engine itself in what players, searches for them and the DHT call back: what others watch plays on. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { MillraceError } from "../../src/errors.ts";
import { encodeCastMessage } from "../../src/players/chromecast/cast-message.ts";
import { Chromecast } from "../../src/players/chromecast/chromecast.ts";
import { writeMessage } from "../../src/players/mdns/message.ts";
import { MulticastDns } from "../../src/players/mdns/multicast-dns.ts";
import { ServiceResponder } from "../../src/players/mdns/responder.ts";
import { ServiceBrowser } from "../../src/players/mdns/service-browser.ts";
import { PagePlayers } from "../../src/players/pages/page-players.ts";
import { Players } from "../../src/players/players.ts";
import { FfplayRun } from "../../src/players/programs/ffplay-run.ts";
import { MpvIpc } from "../../src/players/programs/mpv-ipc.ts";
import { ProgramPlayer, type ProgramPorts, type RunningProgram } from "../../src/players/programs/program.ts";
import type { ChildProcess, SocketAddress } from "../../src/ports.ts";
import { SsdpAnnouncer } from "../../src/upnp/announcer.ts";
import { searchDevices } from "../../src/upnp/ssdp.ts";
import { FakeStream, RememberingPlayer, Shelf } from "../players/support.ts";
import { serveEngine } from "../support/engine.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { faultLog } from "../support/fault-log.ts";
import { until } from "../support/until.ts";
import { MIB, seedNoise, startSession } from "./support.ts";

const { signal } = new AbortController();
const utf8 = (text: string) => new TextEncoder().encode(text);
const broken = (): never => {
  throw new TypeError("object null is not iterable");
};

/** Time goes by, and promises settle in between. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed <= ms; passed += ms / 20 || 1) {
    await clock.advanceAsync(ms / 20);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** A machine at 192.168.7.5 whose sockets hear what `say` says. */
function machine() {
  const clock = new FakeClock();
  const { log, faults } = faultLog();
  const handlers = new Set<(data: Uint8Array, from: SocketAddress) => void>();
  const sent: Uint8Array[] = [];
  const bind = () =>
    Promise.resolve({
      address: { host: "0.0.0.0", port: 5353 },
      onMessage: (handler: (data: Uint8Array, from: SocketAddress) => void) => void handlers.add(handler),
      send: (data: Uint8Array) => Promise.resolve(void sent.push(data)),
      close: () => handlers.clear(),
    });
  const network = {
    resolve: (host: string) => Promise.resolve([host]),
    interfaces: () => [{ name: "eth0", host: "192.168.7.5", prefixLength: 24, family: 4 as const, loopback: false }],
  };
  const say = (data: Uint8Array) => {
    for (const handler of handlers) handler(data, { host: "192.168.7.9", port: 5353 });
  };
  return { clock, log, faults, udp: { bind }, network, say, sent };
}

/** A player whose program calls back as `run` says, with the ports that it was started with. */
function programPlayer(run: (ports: ProgramPorts) => void) {
  const { clock, log, faults } = machine();
  const never = () => Promise.reject(new Error("nothing is to be started"));
  let ends = 0;
  const start = (_path: string, ports: ProgramPorts): Promise<RunningProgram> => {
    let finish!: () => void;
    return Promise.resolve({
      ended: new Promise<void>((resolve) => finish = resolve),
      play(_stream, signal) {
        const playing = new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        run(ports);
        return playing;
      },
      status: () => Promise.resolve({ state: "playing", positionSeconds: 0, durationSeconds: 0 }),
      control: () => Promise.resolve(),
      end: () => Promise.resolve((ends++, finish())),
    });
  };
  const ports = { clock, log, processes: { spawn: never }, localSockets: { newAddress: never, connect: never } };
  const player = new ProgramPlayer({ id: "mpv", name: "mpv", command: "mpv", start }, "mpv", ports);
  return { player, clock, faults, ends: () => ends };
}

async function endsItsProgram(run: (ports: ProgramPorts) => void, count = 1) {
  const { player, clock, faults, ends } = programPlayer(run);
  const refused = assertRejects(() => player.open(new FakeStream("1"), signal), MillraceError);
  await clock.advanceAsync(10);
  const error = await refused as MillraceError;
  assertEquals([error.code, faults.length, ends() > 0], ["internal", count, true]);
  assertEquals((await player.status(signal)).state, "idle");
}

/** The readable end of a connection or of a program's output, and a way to say something there. */
function output() {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  const readable = new ReadableStream<Uint8Array>({ start: (given) => void (controller = given) });
  return { readable, say: (bytes: Uint8Array) => controller.enqueue(bytes) };
}

/** An open connection to a Chromecast that says what the test says. */
async function chromecast() {
  const { clock, log, faults } = machine();
  const { readable, say } = output();
  const connectUnverified = () =>
    Promise.resolve({ readable, writable: new WritableStream<Uint8Array>(), close: () => {} });
  const facts = { id: "1", name: "TV", icon: null, at: { host: "192.168.7.9", port: 8009 } };
  const player = new Chromecast({ deviceTls: { connectUnverified }, clock, log }, facts);
  const asking = assertRejects(() => player.setVolume(5, signal), MillraceError);
  await settle();
  return { clock, faults, say, ended: async () => assertEquals([(await asking).code, faults.length], ["internal", 1]) };
}

const SERVICE = { instance: "Study", type: "_millrace._tcp", hostLabel: "study", port: 6878 };
const QUESTION = writeMessage({
  id: 0,
  isResponse: false,
  questions: [{ name: ["_millrace", "_tcp", "local"], type: 12 }],
  records: [],
});

const KINDS: Readonly<Record<string, () => Promise<void>>> = {
  "a timer of a program": () => endsItsProgram(({ clock }) => void clock.setTimeout(broken, 5)),
  "a promise in a timer of a program": () =>
    endsItsProgram(({ clock }) => void clock.setTimeout(async () => (await null, broken()), 5)),
  "a fault while a fault ends the program": () =>
    endsItsProgram(({ failed }) => (failed(new TypeError("first")), failed(new TypeError("second"))), 2),

  async "an event of mpv"() {
    const faults: unknown[] = [];
    const { readable, say } = output();
    const wire = { readable, writable: new WritableStream<Uint8Array>(), close: () => {} };
    const ipc = new MpvIpc(wire, (error) => faults.push(error));
    ipc.listen(broken);
    const reply = ipc.command(["get_property", "pause"], signal);
    say(utf8('{"event":"idle"}\n{"error":"success","data":7,"request_id":1}\n'));
    assertEquals([await reply, faults.length], [7, 1]);
  },

  async "a line of ffplay"() {
    const faults: unknown[] = [];
    const [stdout, stderr] = [output(), output()];
    const child = { stdout: stdout.readable, stderr: stderr.readable, exited: new Promise<number>(() => {}) };
    const address = { [Symbol.toPrimitive]: broken } as unknown as string;
    const ports = { clock: new FakeClock(), failed: (error: unknown) => faults.push(error) };
    const run = new FfplayRun(child as unknown as ChildProcess, ports, address);
    stderr.say(utf8("a warning\n   7.00 A-V: -0.046 fd=   0 aq=    4KB vq=    9KB sq=    0B f=0/0   \r"));
    await run.begun;
    assertEquals(faults.length, 1);
  },

  async "a timer of a Chromecast's connection"() {
    const { clock, ended } = await chromecast();
    const { monotonic } = clock;
    let calls = 0;
    Object.assign(clock, { monotonic: () => ++calls === 1 ? broken() : monotonic.call(clock) });
    await pass(clock, 5000);
    await ended();
  },

  async "a message of a Chromecast"() {
    const { say, ended } = await chromecast();
    const { parse } = JSON;
    const text = '{"type":"CLOSE"}';
    let reads = 0;
    const trap = new Proxy({}, { get: () => ++reads <= 1 ? "CLOSE" : broken() });
    JSON.parse = (json: string) => json === text ? trap : parse(json);
    try {
      const namespace = "urn:x-cast:com.google.cast.tp.connection";
      say(encodeCastMessage({ source: "receiver-0", destination: "sender-0", namespace, text }));
      await ended();
    } finally {
      JSON.parse = parse;
    }
  },

  async "the ping of an open page"() {
    const ports = machine();
    const pages = new PagePlayers(ports);
    pages.join("192.168.7.9", false);
    pages.join("192.168.7.8", false);
    const { stringify } = JSON;
    let pings = 0;
    JSON.stringify =
      ((...value: Parameters<typeof stringify>) => ++pings === 1 ? broken() : stringify(...value)) as typeof stringify;
    try {
      await pass(ports.clock, 15_000);
    } finally {
      JSON.stringify = stringify;
    }
    assertEquals([(await pages.list()).length, ports.faults.length], [1, 1]);
    await pages.close();
  },

  async "what hears mDNS messages"() {
    const ports = machine();
    const dns = new MulticastDns(ports);
    let heard = 0;
    await dns.join(broken);
    await dns.join(() => heard++);
    ports.say(QUESTION);
    assertEquals([heard, ports.faults.length], [1, 1]);
  },

  async "the end of a search for services"() {
    const ports = machine();
    const dns = new MulticastDns(ports);
    const browser = new ServiceBrowser(ports, dns, "_googlecast._tcp");
    const listing = browser.list();
    await pass(ports.clock, 3000);
    await listing;
    Object.assign(dns, { leave: broken });
    await pass(ports.clock, 60_000);
    assertEquals(ports.faults.length, 1);
  },

  async "announcing this engine as a player"() {
    const ports = machine();
    let calls = 0;
    const facts = () => ++calls <= 2 ? broken() : [];
    const responder = new ServiceResponder(new MulticastDns(ports), ports, { ...SERVICE, facts }, () => {
      return Promise.resolve(true);
    });
    await responder.open();
    await pass(ports.clock, 2000);
    assertEquals([ports.sent.length, ports.faults.length], [0, 2]);
    ports.say(QUESTION);
    await pass(ports.clock, 2000);
    assertEquals(ports.sent.length, 1);
    await responder.close();
  },

  async "an answer of a television"() {
    const ports = machine();
    const searching = searchDevices({ ...ports, udp: ports.udp }, "urn:x", signal);
    await pass(ports.clock, 0);
    ports.say(new Proxy(new Uint8Array(1), { get: broken }));
    await pass(ports.clock, 3000);
    assertEquals([await searching, ports.faults.length], [[], 1]);
  },

  async "a search of a control point"() {
    const ports = machine();
    const device = { udn: "uuid:1", types: ["urn:x"], port: 1, path: "/", host: "0.0.0.0", isOffered: () => true };
    const announcer = new SsdpAnnouncer(ports, device);
    await pass(ports.clock, 0);
    const search = 'M-SEARCH * HTTP/1.1\r\nMAN: "ssdp:discover"\r\nMX: 1\r\nST: urn:x\r\n\r\n';
    Object.assign(device, { isOffered: broken });
    ports.say(utf8(search));
    Object.assign(device, { isOffered: () => true });
    ports.say(utf8(search));
    Object.assign(device, { types: null });
    await pass(ports.clock, 1000);
    assert(ports.faults.length >= 1);
    Object.assign(device, { types: [] });
    await announcer.close();
  },

  async "one kind of players"() {
    const ports = machine();
    const finder = { list: () => Promise.resolve().then(broken), close: () => Promise.resolve() };
    const players = new Players([finder, new Shelf(new RememberingPlayer("tv"))], ports);
    assertEquals((await players.list({ isLocal: true })).map(({ id }) => id), ["tv"]);
    await players.control("tv", { isLocal: true }, { kind: "stop" }, signal);
    assertEquals(ports.faults.length, 2);
  },
};

test("An exception in a callback of a player or of a search for players costs that one; a stream plays on", async () => {
  const noise = await seedNoise(4 * MIB, { seed: 6 });
  const served = await serveEngine();
  try {
    const { playback_url } = await startSession(served, "getfile", { magnet: noise.magnet });
    const reader = (await fetch(playback_url)).body!.getReader();
    const read: Uint8Array[] = [];
    for (const [name, kind] of Object.entries(KINDS)) {
      try {
        await kind();
      } catch (cause) {
        throw new Error(name, { cause });
      }
      const { done, value } = await reader.read();
      if (!done) read.push(value);
    }
    for (let part = await reader.read(); !part.done; part = await reader.read()) read.push(part.value);
    assertEquals(new Uint8Array(await new Blob(read as Uint8Array<ArrayBuffer>[]).arrayBuffer()), noise.data);
  } finally {
    await served.close();
    await noise.close();
  }
});

test("An exception in a lookup of the DHT costs that lookup; the stream and another one play on", async () => {
  const [first, second] = await Promise.all([seedNoise(2 * MIB, { seed: 1 }), seedNoise(2 * MIB, { seed: 2 })]);
  const served = await serveEngine({ dht: true, dhtBootstrap: [] });
  const { lookup } = DhtNode.prototype;
  let lookups = 0;
  try {
    DhtNode.prototype.lookup = function (_infohash, _port, report) {
      // From a callback of the library as well as from the call itself.
      report(null as unknown as SocketAddress, "127.0.0.1");
      return ++lookups === 1 ? broken() : Promise.reject(new TypeError("object null is not iterable"));
    };
    const start = (noise: typeof first) => startSession(served, "getfile", { magnet: noise.magnet });
    const started = [await start(first), await start(second)];
    await until("both looked peers up", () => lookups >= 2);
    for (const [n, noise] of [first, second].entries()) {
      assertEquals(new Uint8Array(await (await fetch(started[n]!.playback_url)).arrayBuffer()), noise.data);
    }
  } finally {
    DhtNode.prototype.lookup = lookup;
    await served.close();
    await Promise.all([first.close(), second.close()]);
  }
});
