/** Peers that hold a magnet's metadata back, drip it, or lie about its size. */
import type { Socket } from "node:net";
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { badPeer, honest } from "../swarm/support/bad-peer.ts";
import { makeTorrent } from "../swarm/support/torrent.ts";
import { startSession } from "../loopback/support.ts";
import { extended, handshake, listen, message, onMessages } from "./support/peers.ts";
import { assertHarmless, withTarget } from "./support/target.ts";

const HUGE = 8 << 20;

/** A magnet starts within this although every peer but one holds it up, ms; the runtimes' own start of a session included. */
const START_MS = 5_000;

/** Serves metadata of `sizeBytes` at one block per `everyMs`; null: none ever. */
function drip(infohashHex: string, sizeBytes: number, everyMs: number | null): (socket: Socket) => void {
  return (socket) => {
    let theirId = 0;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const asked: number[] = [];
    const answer = () => {
      const piece = asked.shift();
      timer = piece === undefined ? null : setTimeout(answer, everyMs!);
      if (piece === undefined || socket.destroyed) return;
      socket.write(extended(theirId, { msg_type: 1, piece, total_size: sizeBytes }, new Uint8Array(16_384)));
    };
    socket.on("close", () => timer !== null && clearTimeout(timer));
    onMessages(socket, (received) => {
      if (received.length === 68 && received[0] === 19) {
        socket.write(handshake(infohashHex));
        socket.write(extended(0, { m: { ut_metadata: 3 }, metadata_size: sizeBytes }));
        socket.write(message(14));
      } else if (received[0] === 20) {
        const text = new TextDecoder("latin1").decode(received);
        if (received[1] === 0) theirId = Number(/11:ut_metadatai(\d+)e/.exec(text)?.[1] ?? 0);
        else if (received[1] === 3 && everyMs !== null) {
          asked.push(Number(/5:piecei(\d+)e/.exec(text)![1]));
          if (timer === null) answer();
        }
      }
    });
  };
}

test("a magnet starts beside thirty peers that drip its metadata, hold it back, or name a huge one", async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  const torrent = await makeTorrent({ bytes: 1 << 20 });
  const { infohashHex } = torrent.metainfo;
  const kinds: [number, number | null][] = [[HUGE, 300], [40_000, null], [torrent.metainfo.infoBytes.length, null]];
  const hostile = await Promise.all(
    Array.from({ length: 30 }, (_, i) => listen(`127.0.6.${i + 1}`, drip(infohashHex, ...kinds[i % kinds.length]!))),
  );
  // The engine dials those first that the magnet names first.
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  try {
    await withTarget(async (target) => {
      const peers = [...hostile, good].map(({ address: { host, port } }) => `&x.pe=${host}:${port}`);
      let tookMs = 0;
      await assertHarmless(target, async () => {
        const startedMs = performance.now();
        const session = await startSession(target as never, "getfile", {
          magnet: `magnet:?xt=urn:btih:${infohashHex}${peers.join("")}`,
          _idx: "0",
        });
        tookMs = performance.now() - startedMs;
        const body = await (await fetch(session.playback_url)).arrayBuffer();
        assertEquals(body.byteLength, torrent.data.length);
      });
      assertLess(tookMs, START_MS, "start of the magnet, ms");
      assert(hostile.filter(({ connections }) => connections > 0).length > 20, "the hostile peers were not dialled");
    });
  } finally {
    await Promise.all([...hostile, good].map((peer) => peer.close()));
  }
});
