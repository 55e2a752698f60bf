/** A seed that a test scripts message by message, so that it can say what no library would. */
import { createServer, type Socket } from "node:net";
import { encodeBencode } from "../../../src/bytes/bencode.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { frame, rawHandshake } from "../../wire/support/links.ts";
import type { TestTorrent } from "./torrent.ts";

/** One connection to the seed. */
export interface RawLink {
  /** Sends messages, as `frame` makes them. */
  send(...messages: (readonly number[] | Uint8Array)[]): void;
  /** An extended message (BEP 10), with bytes after its dictionary. */
  extended(id: number, dictionary: Record<string, unknown>, after?: Uint8Array): void;
  /** Sends a block as asked. */
  block(piece: number, offset: number, length: number): void;
  close(): void;
  readonly isClosed: boolean;
}

/** What the seed does. */
export interface RawScript {
  /** Without BEP 6. Default false. */
  readonly isPlain?: boolean;
  /** The first messages, in one segment with the handshake. Default: all pieces, unchoked. */
  hello?(link: RawLink): void;
  /** Default: sends the block. */
  request?(link: RawLink, piece: number, offset: number, length: number): void;
  /** The far end is interested. */
  interested?(link: RawLink): void;
  /** An extended message of the far end. */
  message?(link: RawLink, id: number, body: Uint8Array): void;
}

/** A running seed. */
export interface RawSeed {
  readonly address: { host: string; port: number };
  /** Requests so far. */
  readonly requests: { piece: number; offset: number; length: number }[];
  readonly connections: number;
  close(): Promise<void>;
}

/** A bitfield message of these pieces. */
export function bitfield(pieceCount: number, has: (piece: number) => boolean): number[] {
  const bytes = new Uint8Array(Math.ceil(pieceCount / 8));
  for (let i = 0; i < pieceCount; i++) if (has(i)) bytes[i >> 3]! |= 0x80 >> (i & 7);
  return frame(5, bytes);
}

export const CHOKE: readonly number[] = frame(0);
export const UNCHOKE: readonly number[] = frame(1);

/** Seeds `torrent` as `script` says. */
export async function rawSeed(torrent: TestTorrent, script: RawScript = {}): Promise<RawSeed> {
  const { metainfo, data } = torrent;
  const requests: RawSeed["requests"] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    let read = new Uint8Array();
    let hasShaken = false;
    // An id of its own: peers are known by their id and host.
    const id = crypto.getRandomValues(new Uint8Array(20));
    let first: number[] | null = [...rawHandshake(script.isPlain !== true, metainfo.infohash).slice(0, 48), ...id];
    const link: RawLink = {
      send: (...messages) => {
        for (const message of messages) {
          first === null ? socket.write(Uint8Array.from(message)) : first.push(...message);
        }
      },
      extended: (id, dictionary, after = new Uint8Array()) =>
        link.send(frame(20, Uint8Array.of(id), encodeBencode(dictionary as never), after)),
      block: (piece, offset, length) => {
        const at = piece * metainfo.pieceLengthBytes + offset;
        // Without a list of numbers: on a busy machine these take so long that we were taken for silent.
        const head = new Uint8Array(13);
        const fields = new DataView(head.buffer);
        fields.setUint32(0, 9 + length);
        head[4] = 7;
        fields.setUint32(5, piece);
        fields.setUint32(9, offset);
        link.send(head, data.subarray(at, at + length));
      },
      close: () => socket.destroy(),
      get isClosed() {
        return socket.destroyed;
      },
    };
    const handle = (kind: number, body: Uint8Array) => {
      const view = new DataView(body.buffer, body.byteOffset);
      if (kind === 2) script.interested?.(link);
      else if (kind === 20) script.message?.(link, body[0]!, body.subarray(1));
      else if (kind === 6) {
        const [piece, offset, length] = [view.getUint32(0), view.getUint32(4), view.getUint32(8)];
        requests.push({ piece, offset, length });
        if (script.request === undefined) link.block(piece, offset, length);
        else script.request(link, piece, offset, length);
      }
    };
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk: Uint8Array) => {
      read = concatBytes([read, chunk]);
      if (!hasShaken && read.length >= 68) {
        hasShaken = true;
        read = read.slice(68);
        if (script.hello === undefined) link.send(bitfield(metainfo.pieceCount, () => true), UNCHOKE);
        else script.hello(link);
        const bytes = first!;
        first = null;
        socket.write(new Uint8Array(bytes));
      }
      while (hasShaken && read.length >= 4) {
        const length = new DataView(read.buffer, read.byteOffset).getUint32(0);
        if (read.length < 4 + length) return;
        const message = read.slice(4, 4 + length);
        read = read.slice(4 + length);
        if (length > 0) handle(message[0]!, message.slice(1));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    address: { host: "127.0.0.1", port },
    requests,
    get connections() {
      return connections;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
