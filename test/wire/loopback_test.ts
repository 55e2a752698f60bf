import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { acceptPeer, connectPeer, createPeerId } from "../../src/wire/mod.ts";
import { BLOCK_BYTES } from "../../src/wire/types.ts";
import { INFOHASH, INFOHASH_HEX, Recorder, seeded } from "./support/links.ts";

const PIECE_BYTES = 1 << 20;
const PIECES = 16;

for (const encryption of ["accept", "prefer"] as const) {
  test(`16 MiB arrive intact over the platform's TCP, encryption ${encryption}`, async () => {
    const { tcp, clock } = await loadPorts();
    const random = seeded(1);
    const data = Uint8Array.from({ length: PIECE_BYTES }, () => Math.floor(random() * 256));
    const seeder = new Recorder();
    const waiting: [number, number, number][] = [];
    const pump = () => {
      while (waiting.length > 0) {
        const [piece, offset, length] = waiting.shift()!;
        if (!seeder.link!.piece(piece, offset, data.slice(offset, offset + length))) return;
      }
    };
    seeder.onEvent = ([name, ...args]) => {
      if (name === "ready") {
        seeder.link!.setPieceCount(PIECES);
        seeder.link!.haveAll();
        seeder.link!.unchoke();
        seeder.link!.onDrain = pump;
      } else if (name === "request") {
        waiting.push(args as [number, number, number]);
        if (waiting.length === 1) queueMicrotask(pump);
      }
    };
    const listener = await tcp.listen({ host: "127.0.0.1", port: 0 }, (connection) =>
      acceptPeer(connection, {
        clock,
        candidates: () => [INFOHASH_HEX],
        lookup: () => ({
          infohash: INFOHASH,
          peerId: createPeerId(),
          attach: (link) => {
            seeder.link = link;
            return seeder;
          },
        }),
      }));
    const leecher = new Recorder();
    const pieces = Array.from({ length: PIECES }, () => new Uint8Array(PIECE_BYTES));
    leecher.blockTarget = (piece, offset, length) => pieces[piece]!.subarray(offset, offset + length);
    const connection = await tcp.connect(listener.address, { signal: AbortSignal.timeout(5000) });
    const link = connectPeer(connection, {
      clock,
      infohash: INFOHASH,
      peerId: createPeerId(),
      handlers: leecher,
      encryption,
    });
    let asked = 0;
    const ask = () => {
      if (asked === PIECES * PIECE_BYTES) return;
      link.request(Math.floor(asked / PIECE_BYTES), asked % PIECE_BYTES, BLOCK_BYTES);
      asked += BLOCK_BYTES;
    };
    await new Promise<void>((resolve, reject) => {
      let blocks = 0;
      leecher.block = () => {
        if (++blocks === PIECES * PIECE_BYTES / BLOCK_BYTES) resolve();
        else ask();
      };
      leecher.onEvent = ([name, error]) => {
        if (name === "unchoke") { for (let i = 0; i < 100; i++) ask(); }
        if (name === "close") reject(error);
      };
    });
    for (const piece of pieces) assertEquals(piece, data);
    assertEquals(link.counters.downloadedPayloadBytes, PIECES * PIECE_BYTES);
    const closed = new Promise<void>((resolve) => seeder.onEvent = ([name]) => name === "close" && resolve());
    link.close();
    await Promise.all([closed, listener.close()]);
    assert(seeder.of("close").length === 1);
  });
}
