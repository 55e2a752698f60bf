/** Peers that no seeder should be: those that never unchoke, and one that sends forged blocks. */
import net from "node:net";
import { readFileSync } from "node:fs";
import Library from "bittorrent-protocol";

/** How a peer misbehaves: `deaf` speaks BEP 6 and refuses, `mute` does not speak it and ignores what it is asked for. */
export type Vice = "deaf" | "mute" | "liar";

/** Of a liar's blocks each so-manieth is forged, and no other: a piece with one of them is as bad as one full of them. */
const FORGED_EVERY = 2;

/** A listening peer. */
export interface BadPeer {
  readonly port: number;
  close(): void;
}

/** Opens a peer that claims to have all pieces of `clip`. */
export async function openBadPeer(
  vice: Vice,
  { infohash, clip, pieceLengthBytes }: { infohash: string; clip: string; pieceLengthBytes: number },
): Promise<BadPeer> {
  const data = readFileSync(clip);
  const pieces = Math.ceil(data.length / pieceLengthBytes);
  const field = new Uint8Array((pieces + 7) >> 3);
  for (let piece = 0; piece < pieces; piece++) field[piece >> 3]! |= 0x80 >> (piece & 7);
  // Peers are told apart by their ids.
  const peerId = Array.from(crypto.getRandomValues(new Uint8Array(20)), (byte) => byte.toString(16).padStart(2, "0"));
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ noDelay: true }, (socket) => {
    sockets.add(socket.once("close", () => sockets.delete(socket)));
    socket.on("error", () => {});
    const wire = new Library("tcpIncoming", 2);
    socket.pipe(wire).pipe(socket);
    wire.on("error", () => socket.destroy());
    wire.on("crypto-infohash", () => wire.setInfoHash(infohash));
    let asked = 0;
    wire.on("handshake", () => {
      wire.handshake(infohash, peerId.join(""), { fast: vice === "deaf" });
      wire.bitfield(field);
    });
    wire.on("interested", () => {
      if (vice === "liar") wire.unchoke();
    });
    wire.on("request", (piece: number, offset: number, length: number, done: (e: null, b: Uint8Array) => void) => {
      if (vice !== "liar") return;
      const at = piece * pieceLengthBytes + offset;
      const block = new Uint8Array(data.subarray(at, at + length));
      if (asked++ % FORGED_EVERY === 0) block[length >> 1]! ^= 0xff;
      done(null, block);
    });
    socket.on("close", () => wire.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
