import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { concatBytes, equalBytes } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import { decodeSecondMessage, encodeSecondMessage } from "../../src/live/second-message.ts";
import type { LivePeerSession } from "../../src/live/swarm/live-session.ts";
import type { LiveSwarm } from "../../src/live/swarm/live-swarm.ts";
import { connectPeer } from "../../src/wire/mod.ts";
import { BLOCK_BYTES } from "../../src/wire/types.ts";
import { until } from "../support/until.ts";
import { LiveLab, type Viewer } from "./live-lab.ts";

const TOKEN = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);

/** Has `swarm` take its line for one that loses packets. */
function loses({ node }: LiveSwarm): void {
  Object.defineProperty(node.uploader.flight.line, "losesPackets", { value: true });
}

/** The sessions of its further connections. */
function spares({ peers }: LiveSwarm): LivePeerSession[] {
  return [...peers.sessions].filter((session) => session.first?.spares.includes(session));
}

/** The only member that it is connected to. */
function member({ peers }: LiveSwarm): LivePeerSession {
  return [...peers.members()][0]!;
}

/** What the viewer played is what the broadcaster sent. */
function assertGenuine({ got }: Viewer, { node }: LiveSwarm): void {
  for (const [seq, bytes] of got) {
    const blocks = node.window.get(seq)?.blocks;
    if (blocks !== undefined) assert(equalBytes(bytes, concatBytes(blocks.map((block) => block!))), `${seq}`);
  }
}

test("encodeSecondMessage() writes what decodeSecondMessage() reads, and another length is a violation", () => {
  const bytes = encodeSecondMessage({ type: "second", token: TOKEN, isAsked: true });
  assertEquals(bytes, Uint8Array.of(16, ...TOKEN, 1));
  assertEquals(decodeSecondMessage(bytes), { type: "second", token: TOKEN, isAsked: true });
  assertEquals(decodeSecondMessage(Uint8Array.of(12)), null);
  assertThrows(() => decodeSecondMessage(bytes.subarray(0, 9)), MillraceError);
});

for (const [who, isDialled] of [["opens", false], ["asks for", true]] as const) {
  test(`SpareLinks ${who} two more connections when packets are lost, and pushed blocks take all`, () =>
    LiveLab.run(async (lab) => {
      const home = await lab.node();
      const { broadcast, swarm } = await lab.broadcast(home);
      const viewer = await lab.viewer(broadcast.metainfo, [home.address]);
      await until("the viewer plays", () => viewer.got.size > 2);
      assertEquals([spares(swarm).length, spares(viewer.swarm).length], [0, 0]);
      if (isDialled) member(swarm).reach = "closed";
      loses(swarm);
      const over = (at: number) => spares(swarm)[at]?.link?.counters.uploadedPayloadBytes ?? 0;
      await until("blocks take the others", () => Math.min(over(0), over(1)) > 3 * BLOCK_BYTES);
      for (const spare of spares(swarm)) assertEquals(spare.link!.incoming, isDialled);
      for (const spare of spares(viewer.swarm)) assertEquals(spare.link!.incoming, !isDialled);
      const first = member(swarm).link!.counters.uploadedPayloadBytes;
      await until("blocks take the first one, too", () => member(swarm).link!.counters.uploadedPayloadBytes > first);
      assertEquals([swarm.peers.memberCount, viewer.swarm.peers.memberCount], [1, 1]);
      assertEquals([swarm.peers.count, viewer.swarm.peers.count], [3, 3]);

      // Neither side needs it.
      for (const spare of spares(swarm)) spare.drop();
      await until("they are gone", () => viewer.swarm.peers.count === 1 && swarm.peers.count === 1);
      assertEquals([member(swarm).peer!.spares, member(viewer.swarm).peer!.spares], [[], []]);
      const played = viewer.got.size;
      await until("the viewer plays on", () => viewer.got.size > played + 3);
      assertEquals(viewer.feed.skippedPieces, 0);
      assertGenuine(viewer, swarm);
    }));
}

test("LivePeers ends further connections with the first one", () =>
  LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast, swarm } = await lab.broadcast(home);
    const viewer = await lab.viewer(broadcast.metainfo, [home.address]);
    loses(swarm);
    await until(
      "there are two more connections",
      () => spares(swarm).length === 2 && spares(viewer.swarm).length === 2,
    );
    const old = spares(viewer.swarm);
    member(viewer.swarm).drop();
    await until("all are gone", () => old.every(({ isReady }) => !isReady) && spares(swarm).length === 0);
  }));

test("LivePeers hangs up on a connection that shows a member's peer id, but not the token that the member was given", () =>
  LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast, swarm } = await lab.broadcast(home);
    const viewer = await lab.viewer(broadcast.metainfo, [home.address]);
    await until("the viewer plays", () => viewer.got.size > 2);
    for (const joins of [TOKEN, undefined]) {
      const connection = await lab.ports.tcp.connect(home.address, { signal: AbortSignal.timeout(10_000) });
      let isOver = false;
      connectPeer(connection, {
        clock: lab.ports.clock,
        infohash: broadcast.metainfo.infohash,
        peerId: member(swarm).info!.peerId,
        live: { role: "viewer", upBytesPerS: null, ...(joins === undefined ? {} : { joins }) },
        handlers: {
          ready() {},
          extended() {},
          peers() {},
          dhtPort() {},
          live() {},
          close: () => isOver = true,
        } as never,
      });
      await until("it is hung up on", () => isOver);
    }
    assertEquals([spares(swarm).length, swarm.peers.memberCount, member(swarm).isReady], [0, 1, true]);
  }));
