import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { createDiscovery, type DiscoveryOptions } from "../../src/discovery/discovery.ts";
import type { DiscoveryRequest, DiscoverySourceStatus } from "../../src/discovery/types.ts";
import { MillraceError } from "../../src/errors.ts";
import type { UdpPort } from "../../src/ports.ts";
import { compact, startHttpTracker } from "./support/http-tracker.ts";
import { testPorts, udp, until } from "./support/ports.ts";
import { announceBody, connectBody, startUdpTracker } from "./support/udp-tracker.ts";
import { ownMs } from "../support/held-up.ts";

function options(parts: Partial<DiscoveryOptions> = {}): DiscoveryOptions {
  return {
    peerId: new TextEncoder().encode("-MI0100-abcdefghijkl"),
    peerPort: () => 8621,
    dht: { enabled: false, bootstrap: [], statePath: null },
    lsd: { enabled: false },
    userAgent: "millrace/test",
    ...parts,
  };
}

const dht = (bootstrap: string[] = []) => ({ enabled: true, host: "127.0.0.1", bootstrap, statePath: null });

function request(found: string[], parts: Partial<DiscoveryRequest> = {}): DiscoveryRequest {
  return {
    infohash: new Uint8Array(20).fill(3),
    trackers: [],
    isPrivate: false,
    onPeer: (peer, origin) => found.push(`${origin} ${peer.host}:${peer.port}`),
    state: () => ({ uploadedBytes: 0, downloadedBytes: 0, leftBytes: 100 }),
    ...parts,
  };
}

test("createDiscovery() finds peers by HTTP, UDP and extra trackers, and notifies them when it closes", async () => {
  const http = await startHttpTracker((_announce, response) => {
    response.end(encodeBencode({ interval: 1800, peers: compact("10.0.0.1:1") }));
  });
  const extra = await startHttpTracker((_announce, response) => {
    response.end(encodeBencode({ interval: 1800, peers: compact("10.0.0.3:3", "10.0.0.1:1") }));
  });
  const udpTracker = await startUdpTracker(udp, ({ action }) => ({
    body: action === 0 ? connectBody() : announceBody(1800, 0, 1, compact("10.0.0.2:2")),
  }));
  const discovery = await createDiscovery(testPorts(), options({ trackers: [`${extra.origin}/announce`] }));
  const found: string[] = [];
  const session = discovery.start(request(found, {
    trackers: [[`${http.origin}/announce`], [`udp://127.0.0.1:${udpTracker.port}`], ["wss://x.example"]],
  }));
  await until(() => session.status().filter((line) => line.peers > 0).length === 3, "all trackers answered");
  assertEquals([...found].sort(), ["tracker 10.0.0.1:1", "tracker 10.0.0.2:2", "tracker 10.0.0.3:3"]);
  assertEquals(session.status().length, 4);
  session.completed();
  await until(() => http.seen.length === 2 && udpTracker.seen.length === 3, "completed arrived");
  await discovery.close();
  for (const tracker of [http, extra]) {
    assertEquals(tracker.seen.map(({ query }) => query.get("event")), ["started", "completed", "stopped"]);
    await tracker.close();
  }
  assertEquals(udpTracker.seen.map(({ action, bytes }) => action === 0 ? "connect" : bytes[83]), ["connect", 2, 1, 3]);
  udpTracker.close();
  assertEquals(assertThrows(() => discovery.start(request([])), MillraceError).code, "closed");
});

test("Discovery.start() refuses an infohash that is running, and accepts it again once that is closed", async () => {
  const discovery = await createDiscovery(testPorts(), options());
  const session = discovery.start(request([]));
  assertEquals(assertThrows(() => discovery.start(request([])), MillraceError).code, "conflict");
  void session.close();
  discovery.start(request([]));
  await discovery.close();
});

test("createDiscovery() finds peers by the DHT only", async () => {
  const first = await createDiscovery(testPorts(), options({ dht: dht(), peerPort: () => 7001 }));
  const bootstrap = [`127.0.0.1:${first.dhtPort}`];
  const [a, b] = await Promise.all([7002, 7003].map((port) => {
    return createDiscovery(testPorts(), options({ dht: dht(bootstrap), peerPort: () => port }));
  }));
  const announced = a!.start(request([]));
  await until(() => {
    const [line] = announced.status();
    return line!.nextAnnounceMs !== null && line!.lastError === null;
  }, "the first end is announced");
  const found: string[] = [];
  b!.start(request(found));
  await until(() => found.includes("dht 127.0.0.1:7002"), "the peer was found");
  await Promise.all([first, a!, b!].map((discovery) => discovery.close()));
});

test("Discovery.putImmutable() and getImmutable() carry a content record from one engine to another", async () => {
  const first = await createDiscovery(testPorts(), options({ dht: dht() }));
  const bootstrap = [`127.0.0.1:${first.dhtPort}`];
  const second = await createDiscovery(testPorts(), options({ dht: dht(bootstrap) }));
  const signal = AbortSignal.timeout(20_000);
  const record = encodeBencode({ ih: new Uint8Array(20), v: 1 });
  const target = await second.putImmutable(record, signal);
  assertEquals(await first.getImmutable(target, signal), record);
  await Promise.all([first.close(), second.close()]);
  assertEquals((await assertRejects(() => first.getImmutable(target, signal), MillraceError)).code, "closed");
});

test("createDiscovery() finds peers by LSD only", async () => {
  const lsd = { enabled: true, interfaces: ["127.0.0.1"] };
  const infohash = crypto.getRandomValues(new Uint8Array(20));
  const [a, b] = await Promise.all([7001, 7002].map((port) => {
    return createDiscovery(testPorts(), options({ lsd, peerPort: () => port }));
  }));
  const found: string[] = [];
  b!.start(request(found, { infohash }));
  a!.start(request([], { infohash }));
  await until(() => found.some((line) => line.startsWith("lsd") && line.endsWith(":7001")), "b heard a");
  await Promise.all([a!.close(), b!.close()]);
});

test("Discovery.start() asks only a private torrent's own trackers, even when privacy is learnt late", async () => {
  const own = await startHttpTracker((_announce, response) => void response.end(encodeBencode({ interval: 1800 })));
  const extra = await startHttpTracker((_announce, response) => void response.end(encodeBencode({ interval: 1800 })));
  let datagrams = 0;
  const counting: UdpPort = {
    async bind(bind) {
      const socket = await udp.bind(bind);
      return { ...socket, send: (data, to) => (datagrams++, socket.send(data, to)) };
    },
  };
  const discovery = await createDiscovery(
    testPorts({ udp: counting }),
    options({ dht: dht(), lsd: { enabled: true, interfaces: ["127.0.0.1"] }, trackers: [`${extra.origin}/announce`] }),
  );
  const trackers = [[`${own.origin}/announce`]];
  const session = discovery.start(request([], { trackers, isPrivate: true }));
  await until(() => session.status()[0]!.nextAnnounceMs !== null, "the tracker answered");
  session.needPeers();
  assertEquals(session.status().map(({ kind }) => kind), ["tracker"]);
  await session.close();
  assertEquals([own.seen.length, extra.seen.length, datagrams], [2, 0, 0]);

  const late = discovery.start(request([], { trackers }));
  assertEquals(late.status().map(({ kind }) => kind), ["tracker", "tracker", "dht", "lsd"]);
  await until(() => extra.seen.length === 1, "the extra tracker was asked");
  late.setPrivate();
  assertEquals(late.status().map(({ kind }) => kind), ["tracker"]);
  await until(() => extra.seen.length === 2, "the extra tracker was told");
  assertEquals(extra.seen[1]!.query.get("event"), "stopped");
  await discovery.close();
  await Promise.all([own.close(), extra.close()]);
});

test("Discovery.close() ends within 2 s even if trackers hang", async () => {
  let asked = 0;
  const hanging = await startHttpTracker(() => void asked++);
  const discovery = await createDiscovery(testPorts(), options({ dht: dht() }));
  discovery.start(request([], { trackers: [[`${hanging.origin}/announce`], ["udp://127.0.0.1:9"]] }));
  await until(() => asked === 1, "the tracker was asked");
  assert(await ownMs(() => discovery.close()) < 2_000);
  await hanging.close();
});

test("createDiscovery() continues without sources that cannot start", async () => {
  const none: UdpPort = { bind: () => Promise.reject(new MillraceError("unavailable", "no UDP here")) };
  const discovery = await createDiscovery(testPorts({ udp: none }), options({ dht: dht(), lsd: { enabled: true } }));
  assertEquals(discovery.dhtPort, null);
  const error = await assertRejects(
    () => discovery.putImmutable(encodeBencode("x"), new AbortController().signal),
    MillraceError,
  );
  assertEquals(error.code, "unavailable");
  discovery.addDhtNode({ host: "127.0.0.1", port: 1 });
  const session = discovery.start(request([], { trackers: [["udp://127.0.0.1:9"]] }));
  await until(() => session.status()[0]!.lastError !== null, "the tracker failed");
  assertEquals(session.status()[0]!.lastError, "no UDP here");
  await discovery.close();
});

test("createDiscovery() looks up the first few peers that a tracker gives by name, and keeps the tracker as their source", async () => {
  const names = Array.from({ length: 20 }, (_, i) => ({ ip: `n${i}.example`, port: 7000 + i }));
  const tracker = await startHttpTracker((_announce, response) => {
    response.end(encodeBencode({ interval: 1800, peers: [{ ip: "10.0.0.1", port: 1 }, ...names] }));
  });
  const asked: string[] = [];
  const network = {
    interfaces: () => [],
    resolve: (name: string, { holder = "" }: { holder?: string } = {}) => {
      asked.push(`${name} ${holder.slice(40)}`);
      if (name === "n1.example") return Promise.reject(new MillraceError("not_found", "no such host"));
      return Promise.resolve(["10.1.1.1", "10.1.1.2", "10.1.1.3", "10.1.1.4", "10.1.1.5"]);
    },
  };
  const discovery = await createDiscovery(testPorts({ network }), options());
  const found: string[] = [];
  const session = discovery.start(request([], {
    trackers: [[`${tracker.origin}/announce`]],
    onPeer: ({ host, port }, origin, source) => found.push(`${origin} ${host}:${port} ${source}`),
  }));
  await until(() => found.length === 1 + 7 * 4, "the names are looked up");
  assertEquals(found.slice(0, 2), ["tracker 10.0.0.1:1 127.0.0.1", "tracker 10.1.1.1:7000 127.0.0.1"]);
  assertEquals(asked, Array.from({ length: 8 }, (_, i) => `n${i}.example  peers`));
  assertEquals(session.status()[0]!.peers, 29);
  await discovery.close();
  await tracker.close();
});

test("Discovery.start() announces a hybrid by both names, and shows each source once", async () => {
  const tracker = await startHttpTracker((announce, response) => {
    const isSecond = announce.query.get("info_hash")!.toLowerCase().startsWith("%04");
    response.end(encodeBencode({ interval: 1800, peers: compact(isSecond ? "10.0.0.2:2" : "10.0.0.1:1") }));
  });
  const names = () => tracker.seen.map(({ query }) => `${query.get("event")} ${query.get("info_hash")!.slice(0, 3)}`);
  const discovery = await createDiscovery(testPorts(), options());
  const found: string[] = [];
  const session = discovery.start(request(found, { trackers: [[`${tracker.origin}/announce`]] }));
  session.addName(new Uint8Array(20).fill(3));
  session.addName(new Uint8Array(20).fill(4));
  session.addName(new Uint8Array(20).fill(4));
  await until(() => found.length === 2, "both names found a peer");
  assertEquals(found.sort(), ["tracker 10.0.0.1:1", "tracker 10.0.0.2:2"]);
  assertEquals(session.status().map(({ kind, peers, lastError }) => [kind, peers, lastError]), [["tracker", 1, null]]);
  const second = await startHttpTracker((_announce, response) => void response.end(encodeBencode({ interval: 1800 })));
  session.addTrackers([[`${second.origin}/announce`]]);
  await until(() => second.seen.length === 2, "a tracker that is learnt later is asked by both names");
  await discovery.close();
  assertEquals(names().sort(), ["started %03", "started %04", "stopped %03", "stopped %04"]);
  await Promise.all([tracker.close(), second.close()]);
});

test("Discovery.start() announces a private torrent by one name, even when privacy is learnt late", async () => {
  const tracker = await startHttpTracker((_announce, response) => void response.end(encodeBencode({ interval: 1800 })));
  const discovery = await createDiscovery(testPorts(), options());
  const trackers = [[`${tracker.origin}/announce`]];
  const known = discovery.start(request([], { trackers, isPrivate: true }));
  known.addName(new Uint8Array(20).fill(4));
  await until(() => known.status()[0]!.nextAnnounceMs !== null, "the tracker answered");
  await known.close();
  assertEquals(tracker.seen.length, 2);
  const late = discovery.start(request([], { trackers }));
  late.addName(new Uint8Array(20).fill(4));
  await until(() => tracker.seen.length === 4, "both names are announced");
  late.setPrivate();
  await until(() => tracker.seen.length === 5, "the second name is given up");
  assertEquals(tracker.seen[4]!.query.get("event"), "stopped");
  late.completed();
  late.addName(new Uint8Array(20).fill(5));
  await until(() => tracker.seen.length === 6, "the first name goes on");
  assertEquals(tracker.seen[5]!.query.get("event"), "completed");
  await discovery.close();
  await tracker.close();
});

test("Discovery.start() is found in the DHT and the local network by those who know the second name alone", async () => {
  const [first, second] = [1, 2].map(() => crypto.getRandomValues(new Uint8Array(20)));
  const entry = await createDiscovery(testPorts(), options({ dht: dht() }));
  const lsd = { enabled: true, interfaces: ["127.0.0.1"] };
  for (const parts of [{ lsd }, { dht: dht([`127.0.0.1:${entry.dhtPort}`]) }]) {
    const [a, b] = await Promise.all([7002, 7003].map((port) => {
      return createDiscovery(testPorts(), options({ peerPort: () => port, ...parts }));
    }));
    const found: string[] = [];
    // Announces in the local network are heard by those who are there, items of the DHT stay.
    if ("lsd" in parts) b!.start(request(found, { infohash: second! }));
    const session = a!.start(request([], { infohash: first! }));
    session.addName(second!);
    const [line, ...others] = session.status();
    assertEquals([line!.kind, others], ["lsd" in parts ? "lsd" : "dht", []]);
    if ("dht" in parts) {
      await until(() => {
        const [{ nextAnnounceMs, lastError }] = session.status() as [DiscoverySourceStatus];
        return nextAnnounceMs !== null && lastError === null;
      }, "both names are announced");
      b!.start(request(found, { infohash: second! }));
    }
    await until(() => found.some((peer) => peer.endsWith(":7002")), "the second name is found");
    await Promise.all([a!.close(), b!.close()]);
  }
  await entry.close();
});
