/** Peers that lie about the hash trees of a torrent of version 2, hold them back, or ask for them without end. */
import type { Socket } from "node:net";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { magnetLink } from "../../src/metainfo/live.ts";
import { startSession } from "../loopback/support.ts";
import { Lab } from "../swarm/support/lab.ts";
import { makeV2Torrent } from "../support/v2-torrent.ts";
import { dial, flood, greeted, handshake, listen, message, onMessages } from "./support/peers.ts";
import { assertHarmless, withTarget } from "./support/target.ts";

const PIECE_BYTES = 262_144;
const FILE_BYTES = 4_000_000;

/** A flood ends earlier when the engine hangs up, ms. */
const MOST_FLOOD_MS = 20_000;

/** What a peer sends for a hash request, or null. */
type Answer = (request: Uint8Array) => Uint8Array | null;

/** The head of a message about hashes is repeated in its answer. */
const HEAD_BYTES = 49;

const ANSWERS: readonly Answer[] = [
  (request) => message(22, request.subarray(1, HEAD_BYTES), crypto.getRandomValues(new Uint8Array(16 * 32))),
  (request) => message(22, request.subarray(1, HEAD_BYTES), new Uint8Array(576 * 32)),
  (request) => message(23, request.subarray(1, HEAD_BYTES)),
  () => null,
];

function answering(infohashHex: string, answer: Answer): (socket: Socket) => void {
  return (socket) =>
    onMessages(socket, (received) => {
      if (received[0] === 19) return void socket.write(Buffer.concat([handshake(infohashHex), message(14)]));
      const sent = received[0] === 21 ? answer(received) : null;
      if (sent !== null) socket.write(sent);
    });
}

test("a magnet of version 2 plays beside twelve peers that lie about hashes or hold them back, and floods of requests for hashes end", async () => {
  const torrent = await makeV2Torrent({ "film.bin": FILE_BYTES }, PIECE_BYTES);
  const { infohashHex, trees } = torrent.metainfo;
  const hostile = await Promise.all(
    Array.from({ length: 12 }, (_, i) => listen(`127.0.7.${i + 1}`, answering(infohashHex, ANSWERS[i % 4]!))),
  );
  try {
    await Lab.run(async (lab) => {
      const good = await lab.seeder(torrent);
      await withTarget(async (target) => {
        const peers = [...hostile, good].map(({ address: { host, port } }) => `&x.pe=${host}:${port}`);
        await assertHarmless(target, async () => {
          const magnet = magnetLink(torrent.metainfo) + peers.join("");
          const session = await startSession(target as never, "getfile", { magnet, _idx: "0" });
          const body = await (await fetch(session.playback_url)).arrayBuffer();
          assertEquals(body.byteLength, FILE_BYTES);
        });
        const requests = {
          "the layer of pieces": message(21, trees![0]!.root, 4, 0, 16, 3),
          "the leaves of a piece": message(21, trees![0]!.root, 0, 0, 16, 0),
          "another tree": message(21, new Uint8Array(32), 4, 0, 512, 9),
          "hashes that nobody wants": message(22, trees![0]!.root, 4, 0, 16, 3, new Uint8Array(512)),
        };
        const sockets = await Promise.all(
          Object.keys(requests).map(async (_, i) => {
            const socket = await dial(target.peer, `127.0.9.${i + 1}`);
            const answer = greeted(socket);
            socket.write(handshake(infohashHex));
            assert(await answer !== null);
            return socket;
          }),
        );
        await assertHarmless(target, async () => {
          await Promise.all(Object.values(requests).map((bytes, i) => flood(sockets[i]!, bytes, MOST_FLOOD_MS)));
        });
        assertEquals(Object.keys(requests).filter((_, i) => !sockets[i]!.destroyed), []);
        for (const socket of sockets) socket.destroy();
      });
    });
  } finally {
    await Promise.all(hostile.map((peer) => peer.close()));
  }
});
