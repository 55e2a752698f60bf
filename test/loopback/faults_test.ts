/** Faults of the engine itself: an exception in one stream costs that stream, and nobody else. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { Children } from "../../src/live/node/trees/children.ts";
import { PacketWindow } from "../../src/playback/live/packet-window.ts";
import { PlaybackSession } from "../../src/playback/session.ts";
import { PeerSession } from "../../src/swarm/torrent/peer-session.ts";
import type { TorrentSwarm } from "../../src/swarm/torrent/torrent-swarm.ts";
import { serveEngine } from "../support/engine.ts";
import { onAir } from "../support/live.ts";
import { until } from "../support/until.ts";
import { ask, MIB, seedNoise, startSession } from "./support.ts";

function broken(): never {
  throw new TypeError("object null is not iterable");
}

test("An exception in a timer of one torrent ends its sessions with a reason; another one plays on", async () => {
  const [first, second] = await Promise.all([seedNoise(2 * MIB, { seed: 1 }), seedNoise(2 * MIB, { seed: 2 })]);
  const served = await serveEngine();
  try {
    const start = (noise: typeof first) => startSession(served, "getfile", { magnet: noise.magnet });
    const [dying, living] = await Promise.all([start(first), start(second)]);
    const swarm = served.engine.swarms.list().find(({ infohashHex }) => infohashHex === dying.infohash)!;
    Object.assign(swarm, { everyRound: broken });
    await until("its swarm is left", () => served.engine.swarms.list().every((one) => one !== swarm));
    const { error } = await (await fetch(dying.stat_url)).json();
    assertEquals(error, "unknown playback session id");
    const body = new Uint8Array(await (await fetch(living.playback_url)).arrayBuffer());
    assertEquals(body, second.data);
    // It can be started again at once.
    const { response } = await ask(served, "getfile", { magnet: first.magnet });
    assert(response !== null);
    assertEquals(new Uint8Array(await (await fetch(response.playback_url)).arrayBuffer()), first.data);
  } finally {
    await served.close();
    await Promise.all([first.close(), second.close()]);
  }
});

test("An exception in a timer of a session ends it with a reason; another one plays on, and it can be started again", async () => {
  const noise = await seedNoise(2 * MIB, { seed: 3 });
  const served = await serveEngine();
  const { stall } = PlaybackSession.prototype as unknown as { stall(): null };
  try {
    const start = (pid: string) => startSession(served, "getfile", { magnet: noise.magnet, pid });
    const [dying, living] = await Promise.all([start("dying"), start("living")]);
    Object.assign(PlaybackSession.prototype, {
      stall(this: PlaybackSession) {
        return this.identity.client === "dying" ? broken() : stall.call(this);
      },
    });
    const errorOf = async ({ stat_url }: typeof dying) => (await (await fetch(stat_url)).json()).error;
    await until("the session ended", async () => await errorOf(dying) !== null);
    assertEquals([await errorOf(dying), await errorOf(living)], ["unknown playback session id", null]);
    assertEquals(new Uint8Array(await (await fetch(living.playback_url)).arrayBuffer()), noise.data);
    Object.assign(PlaybackSession.prototype, { stall });
    const again = await start("dying");
    assertEquals(new Uint8Array(await (await fetch(again.playback_url)).arrayBuffer()), noise.data);
  } finally {
    Object.assign(PlaybackSession.prototype, { stall });
    await served.close();
    await noise.close();
  }
});

test("An exception in the window of a broadcast ends its sessions; the next start plays on in the same swarm", async () => {
  const air = await onAir();
  const { append } = PacketWindow.prototype;
  try {
    const { stat_url } = await startSession(air.viewer, "getstream", { magnet: air.magnet });
    let faults = 0;
    PacketWindow.prototype.append = function (...piece) {
      return faults++ === 0 ? broken() : append.apply(this, piece);
    };
    await until("the session ended", async () => (await (await fetch(stat_url)).json()).error !== null);
    assertEquals(air.viewer.engine.broadcasts.list().length, 1);
    const again = await startSession(air.viewer, "getstream", { magnet: air.magnet });
    const reader = (await fetch(again.playback_url)).body!.getReader();
    assertEquals((await reader.read()).done, false);
    await reader.cancel();
  } finally {
    PacketWindow.prototype.append = append;
    await air.close();
  }
});

test("An exception in handling a peer's message costs the link to that peer, and one at its end the swarm", async () => {
  const [first, second] = await Promise.all([seedNoise(2 * MIB, { seed: 4 }), seedNoise(2 * MIB, { seed: 5 })]);
  const served = await serveEngine();
  const { unchoke } = PeerSession.prototype;
  try {
    let faults = 0;
    PeerSession.prototype.unchoke = function () {
      return faults++ === 0 ? broken() : unchoke.call(this);
    };
    const { playback_url } = await startSession(served, "getfile", { magnet: first.magnet });
    assertEquals(new Uint8Array(await (await fetch(playback_url)).arrayBuffer()), first.data);
    assert(faults > 1, "it connected again");
    const swarm = served.engine.swarms.list()[0] as TorrentSwarm;
    for (const session of swarm.peers.sessions) {
      Object.assign(session, { left: broken });
      session.drop();
    }
    await until("the swarm is left", () => !served.engine.swarms.list().includes(swarm));
    const other = await startSession(served, "getfile", { magnet: second.magnet });
    assertEquals(new Uint8Array(await (await fetch(other.playback_url)).arrayBuffer()), second.data);
  } finally {
    PeerSession.prototype.unchoke = unchoke;
    await served.close();
    await Promise.all([first.close(), second.close()]);
  }
});

test("An exception in a timer of a broadcaster's swarm costs its viewers some seconds: it goes on under its id", async () => {
  const air = await onAir();
  const { excess } = Children.prototype;
  try {
    const { playback_url, stat_url } = await startSession(air.viewer, "getstream", { magnet: air.magnet });
    const reader = (await fetch(playback_url)).body!.getReader();
    await reader.read();
    let sources = 0;
    Children.prototype.excess = function (nowMs) {
      if (this.atSource !== null && sources++ === 0) broken();
      return excess.call(this, nowMs);
    };
    await until("the source's timer threw", () => sources > 0);
    const headSeq = air.broadcast.status().headSeq;
    await until("the source has viewers again", () => air.broadcast.status().peers > 0, 30_000);
    // The same response goes on with what was broadcast since.
    const from = async () => (await (await fetch(stat_url)).json()).response.downloaded as number;
    const before = await from();
    await until("the viewer receives more", async () => await from() > before, 30_000);
    while (air.broadcast.status().headSeq < headSeq + 20) await reader.read();
    await reader.cancel();
  } finally {
    Children.prototype.excess = excess;
    await air.close();
  }
});
