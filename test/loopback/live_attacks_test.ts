/** Each attack of the protocol's list against real members over real connections: the others go on undisturbed. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { LiveSwarm } from "../../src/live/swarm/live-swarm.ts";
import type { LiveMessage } from "../../src/live/messages.ts";
import { BOUNDS } from "../../src/live/node/neighbour/bounds.ts";
import { createLiveKey, hashBlocks, HeaderSigner } from "../../src/live/signer.ts";
import type { Ports, SocketAddress } from "../../src/ports.ts";
import { createLiveTransportFile } from "../../src/metainfo/live.ts";
import type { PeerLink } from "../../src/wire/types.ts";
import { BLOCK_BYTES } from "../../src/wire/types.ts";
import { type Liar, liar, type LiarOptions } from "../live/liar.ts";
import { LiveLab, type LiveNodeLab, RATE, type Viewer } from "../live/live-lab.ts";
import { until } from "../support/until.ts";
import { rawHandshake, uint32 } from "../wire/support/links.ts";
import { assertIdentical } from "./live-support.ts";
import { sha256 } from "../../platform/shared/digests.ts";

interface Scene {
  readonly lab: LiveLab;
  readonly home: LiveNodeLab;
  readonly source: LiveSwarm;
  readonly viewer: Viewer;
  readonly liar: Liar;
}

/** A broadcast, a viewer that plays, and a liar whom the viewer (or the broadcaster) then meets. */
async function withLiar(
  options: (source: LiveSwarm) => LiarOptions,
  body: (scene: Scene) => Promise<void>,
  at: "viewer" | "source" = "viewer",
  uploadLimitBytesPerSecond = 0,
): Promise<void> {
  await LiveLab.run(async (lab) => {
    // Nobody else may hear of the liar.
    const home = await lab.node({ pex: false });
    const { broadcast, swarm: source } = await lab.broadcast(home, { uploadLimitBytesPerSecond });
    const viewer = await lab.viewer(broadcast.metainfo, [home.address], { pex: false });
    await until("the viewer plays", () => viewer.got.size >= 4);
    const bad = await liar(lab.ports, broadcast.metainfo, options(source));
    try {
      (at === "viewer" ? viewer.swarm : source).peers.adopt(bad.address, "manual");
      await until("they met", () => bad.links.length > 0);
      await body({ lab, home, source, viewer, liar: bad });
      const before = viewer.got.size;
      await until("the viewer goes on", () => viewer.got.size >= before + 4);
      assertIdentical(viewer, source);
    } finally {
      await bad.close();
    }
  });
}

/** A WINDOW that claims everything there will be for a while. */
function claimsAll(source: LiveSwarm): LiveMessage {
  const { epoch, base, newest } = source.node.window;
  return { type: "window", epoch, base, solid: newest!.seq + 40, bitmap: new Uint8Array() };
}

const newestOf = (source: LiveSwarm) => source.node.window.newest!;

test("a bad block bans its sender at once and reaches no reader", async () => {
  let link: PeerLink | null = null;
  const met: LiarOptions["met"] = (to) => void (link = to);
  // At twice the bitrate a true block takes 65 ms: the liar's comes before it.
  await withLiar(
    () => ({ met }),
    async ({ source, viewer, liar }) => {
      const seen = newestOf(source).seq;
      await until("a new piece", () => newestOf(source).seq > seen);
      // The header is true, so that the block is looked at.
      const stop = source.onPiece(() => {
        const { seq, bytes } = newestOf(source);
        link!.sendLive(new Uint8Array([1, ...bytes]));
        link!.push(seq, BLOCK_BYTES, new Uint8Array(BLOCK_BYTES));
      });
      await until("the ban", () => viewer.manager.banned("127.0.0.2"));
      stop();
      await until("the end of its connection", () => liar.ended.length > 0);
      assert(viewer.swarm.node.counters.badBlocks >= 1);
    },
    "viewer",
    2 * RATE,
  );
});

test("forged headers are verified fifty times at most, passed on never, and end in a ban", async () => {
  await withLiar((source) => ({
    met: (link, say) => {
      say(claimsAll(source));
      const { seq, bytes } = newestOf(source);
      for (let i = 1; i <= 500; i++) {
        const forged = bytes.slice();
        const view = new DataView(forged.buffer);
        view.setUint32(4, seq + i);
        view.setBigUint64(8, view.getBigUint64(8) + BigInt(1000 * i));
        link.sendLive(new Uint8Array([1, ...forged]));
      }
    },
  }), async ({ viewer, source }) => {
    await until("the ban", () => viewer.manager.banned("127.0.0.2"));
    const { forgedHeaders, skippedVerifications } = viewer.swarm.node.counters;
    // Those of a second, and what the time that they took allows.
    const most = 1.2 * BOUNDS.headersPerS;
    assert(forgedHeaders >= BOUNDS.forgedHeaderLimit && forgedHeaders <= most, `${forgedHeaders}`);
    assert(skippedVerifications <= 500 - BOUNDS.headersPerS);
    assert(viewer.swarm.node.window.newest!.seq <= newestOf(source).seq);
  });
});

test("a replayed stream that has ended is not joined, and left for the true one", async () => {
  await LiveLab.run(async (lab) => {
    const key = await createLiveKey();
    const { metainfo } = await createLiveTransportFile({ name: "Test", publicKey: key.publicKey, bytesPerS: RATE });
    const signer = await HeaderSigner.create(key.privateKey, metainfo.infohash);
    const data = new Uint8Array(65536).fill(0x47);
    const header = async (seq: number, timestampMs: number, epoch: number) => {
      const hashes = await hashBlocks(data, sha256);
      return await signer.sign({ epoch, seq, timestampMs, flags: 1, lengthBytes: data.length, hashes });
    };
    const old = await Promise.all([0, 1, 2].map((seq) => header(seq, Date.now() - 60_000 + 500 * seq, 1)));
    const fresh = await Promise.all(
      Array.from({ length: 8 }, (_, i) => header(100 + i, Date.now() - 4000 + 500 * i, 2)),
    );
    const play = (headers: typeof old): LiarOptions => ({
      met: (link, say) => {
        const [first, last] = [headers[0]!, headers.at(-1)!];
        say({ type: "window", epoch: first.epoch, base: first.seq, solid: last.seq + 1, bitmap: new Uint8Array() });
        for (const { bytes } of headers) link.sendLive(new Uint8Array([1, ...bytes]));
      },
    });
    const replayer = await liar(lab.ports, metainfo, play(old));
    const honest = await liar(lab.ports, metainfo, { ...play(fresh), host: "127.0.0.3" });
    try {
      const viewer = await lab.viewer(metainfo, [replayer.address]);
      await until("headers", () => viewer.swarm.status().peers === 1);
      const met = performance.now();
      await until("some seconds", () => performance.now() - met > 2000);
      assert(!viewer.swarm.node.joined);
      viewer.swarm.peers.adopt(honest.address, "manual");
      await until("joined at the edge", () => viewer.swarm.node.window.newest?.seq === 107);
      assertEquals(viewer.swarm.node.window.epoch, 2);
      // Older epochs and times that do not grow change nothing any more.
      for (const { bytes } of old) replayer.links[0]!.sendLive(new Uint8Array([1, ...bytes]));
      const again = await header(108, fresh[2]!.timestampMs, 2);
      replayer.links[0]!.sendLive(new Uint8Array([1, ...again.bytes]));
      const sent = performance.now();
      await until("all of that was read", () => performance.now() - sent > 500);
      assertEquals([viewer.swarm.node.window.epoch, viewer.swarm.node.window.newest!.seq], [2, 107]);
    } finally {
      await Promise.all([replayer.close(), honest.close()]);
    }
  });
});

test("who claims all and serves nothing is snubbed, and holds nobody up", async () => {
  await withLiar((source) => ({
    offer: { role: "source", upBytesPerS: 100_000_000 },
    met: (_link, say) => {
      const timer = setInterval(() => say(claimsAll(source)), 200);
      setTimeout(() => clearInterval(timer), 20_000).unref?.();
      say(claimsAll(source));
    },
  }), async ({ viewer }) => {
    const find = () => [...viewer.swarm.node.peers].find(({ info }) => info.upBytesPerS === 100_000_000);
    await until("it is a neighbour", () => find() !== undefined);
    const bad = find()!;
    const isAsked = () => viewer.swarm.node.parents.feedsAny(bad) || bad.requests.size > 0;
    await until("it is asked, or chosen as parent", isAsked);
    await until("it is given up", () => !isAsked(), 15_000);
    assertEquals([bad.info.role, bad.isSource], ["source", false]);
  });
});

test("a flood of requests is rejected above 64 and starves nobody", async () => {
  let link: PeerLink | null = null;
  await withLiar(() => ({ met: (to) => void (link = to) }), async ({ source, liar }) => {
    await until("its handshake", () => link !== null && source.peers.memberCount === 2);
    const { base, solid } = source.node.window;
    let sent = 0;
    for (let round = 0; round < 5000; round++) {
      link!.request(base + round % (solid - base), BLOCK_BYTES * (round % 4), BLOCK_BYTES);
      link!.request(2 ** 31 - 1 - round, 0, BLOCK_BYTES);
      sent += 2;
    }
    await until("rejections", () => liar.rejects >= 5000);
    assert(liar.rejects <= sent);
    assertEquals(liar.ended, []);
  }, "source");
});

test("a giant frame ends the connection at its length prefix", async () => {
  await LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast, swarm } = await lab.broadcast(home);
    let received = 0;
    let isEnded = false;
    const listener = await lab.ports.tcp.listen({ host: "127.0.0.2", port: 0 }, (connection) => {
      connection.open({
        data: (chunk) => void (received += chunk.length),
        end: () => void (isEnded = true),
        drain: () => {},
        close: () => void (isEnded = true),
      });
      connection.write(Uint8Array.from([
        ...rawHandshake(true, broadcast.metainfo.infohash),
        ...uint32((1 << 20) + 1),
      ]));
    });
    try {
      swarm.peers.adopt(listener.address, "manual");
      await until("the end of the connection", () => isEnded);
      assert(received > 0);
    } finally {
      await listener.close();
    }
  });
});

test("who reads nothing of what it is sent is dropped, and delays nobody", async () => {
  await withLiar((source) => ({
    met: (link, say) => {
      say({ type: "window", epoch: source.node.window.epoch, base: 0, solid: 0, bitmap: new Uint8Array() });
      say({ type: "subscribe", mask: 0xff, from: 0 });
      // What fills the kernel's buffers takes a while at 1 Mb/s: requests of everything, again and again.
      const timer = setInterval(() => {
        const { base, solid } = source.node.window;
        for (let seq = base; seq < solid; seq++) {
          for (let block = 0; block < 4; block++) link.request(seq, block * BLOCK_BYTES, BLOCK_BYTES);
        }
      }, 5);
      setTimeout(() => clearInterval(timer), 20_000).unref?.();
      setTimeout(() => link.pause(), 100);
    },
  }), async ({ liar, source }) => {
    await until("it is dropped", () => source.peers.memberCount === 1 || liar.ended.length > 0, 25_000);
  }, "source");
});

/** Ports on which `hosts` are other names of addresses on this machine: peers of many networks. */
function withHosts(ports: Ports, hosts: ReadonlyMap<string, SocketAddress>): Ports {
  return {
    ...ports,
    tcp: {
      listen: (at, onConnection) => ports.tcp.listen(at, onConnection),
      async connect(target, options) {
        const real = hosts.get(target.host);
        if (real === undefined) return await ports.tcp.connect(target, options);
        const connection = await ports.tcp.connect(real, options);
        return new Proxy(connection, {
          get: (object, name) => {
            if (name === "remote") return target;
            const value = Reflect.get(object, name, object);
            return typeof value === "function" ? value.bind(object) : value;
          },
        });
      },
    },
  };
}

test("one network fills half of the places that we look for at most, whatever it calls itself (eclipse)", async () => {
  await LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast, swarm: source } = await lab.broadcast(home);
    const liars = await Promise.all(
      Array.from(
        { length: 30 },
        (_, i) => liar(lab.ports, broadcast.metainfo, { host: `127.0.0.${10 + i}`, met: () => {} }),
      ),
    );
    try {
      const hosts = new Map<string, SocketAddress>(liars.map(({ address }, i) => [`203.0.113.${i + 1}`, address]));
      hosts.set("198.51.100.1", home.address);
      const addresses = [...hosts].map(([host, { port }]) => ({ host, port }));
      const viewer = await lab.viewer(broadcast.metainfo, addresses, { ports: withHosts(lab.ports, hosts) });
      await until("it plays", () => viewer.got.size >= 4);
      assertEquals(liars.reduce((sum, { links, ended }) => sum + links.length - ended.length, 0), 10);
      assertIdentical(viewer, source);
    } finally {
      await Promise.all(liars.map((one) => one.close()));
    }
  });
});
