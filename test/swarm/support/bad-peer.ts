/** A peer that seeds over a raw wire and misbehaves as the test chooses. */
import type { Ports, TcpListener } from "../../../src/ports.ts";
import { acceptPeer } from "../../../src/wire/mod.ts";
import { createPeerId } from "../../../src/wire/peer-id.ts";
import type { PeerLink, PeerLinkHandlers, TorrentHandlers } from "../../../src/wire/types.ts";
import type { TestTorrent } from "./torrent.ts";

/** What a bad peer does with a request. */
export type Behaviour = (
  request: { piece: number; offset: number; length: number },
  answer: (data: Uint8Array) => void,
  link: PeerLink,
) => void;

/** A listening peer and its address. */
export interface BadPeer {
  readonly address: { host: string; port: number };
  readonly links: PeerLink[];
  /** Connections made to it. */
  readonly connections: number;
  close(): Promise<void>;
}

const ignore = (): void => {};

/** Handlers that do nothing, save what is given. */
export function idleHandlers(given: Partial<PeerLinkHandlers & TorrentHandlers> = {}): PeerLinkHandlers {
  const all = {
    ready: ignore,
    extended: ignore,
    choke: ignore,
    unchoke: ignore,
    interested: ignore,
    uninterested: ignore,
    bitfield: ignore,
    haveAll: ignore,
    haveNone: ignore,
    have: ignore,
    request: ignore,
    cancel: ignore,
    reject: ignore,
    allowedFast: ignore,
    blockTarget: () => null,
    block: ignore,
    dhtPort: ignore,
    peers: ignore,
    metadata: ignore,
    metadataFailed: ignore,
    close: ignore,
    ...given,
  };
  return { ...all, torrent: all };
}

/** Serves `torrent` on `host`, answering requests as `behaviour` decides; `peerId`: by default each connection has its own. */
export async function badPeer(
  ports: Ports,
  torrent: TestTorrent,
  behaviour: Behaviour,
  options: {
    host?: string;
    unchoke?: boolean;
    peerId?: Uint8Array;
    handlers?: (link: PeerLink) => Partial<PeerLinkHandlers & TorrentHandlers>;
  } = {},
): Promise<BadPeer> {
  const links: PeerLink[] = [];
  let connections = 0;
  const { metainfo } = torrent;
  const listener: TcpListener = await ports.tcp.listen({ host: options.host ?? "127.0.0.1", port: 0 }, (connection) => {
    connections++;
    acceptPeer(connection, {
      clock: ports.clock,
      candidates: () => [metainfo.infohashHex],
      lookup: () => ({
        infohash: metainfo.infohash,
        peerId: options.peerId ?? createPeerId(),
        attach: (link) => {
          links.push(link);
          return idleHandlers({
            ready: () => {
              link.setPieceCount(metainfo.pieceCount, metainfo);
              link.setMetadata(metainfo.infoBytes);
              link.haveAll();
              if (options.unchoke !== false) link.unchoke();
            },
            request: (piece, offset, length) =>
              behaviour({ piece, offset, length }, (bytes) => void link.piece(piece, offset, bytes), link),
            ...options.handlers?.(link),
          });
        },
      }),
    });
  });
  return {
    address: listener.address,
    links,
    get connections() {
      return connections;
    },
    close: async () => {
      for (const link of links) link.close();
      await listener.close();
    },
  };
}

/** The true bytes for a request. */
export function honest(torrent: TestTorrent, r: { piece: number; offset: number; length: number }): Uint8Array {
  const at = r.piece * torrent.metainfo.pieceLengthBytes + r.offset;
  return torrent.data.slice(at, at + r.length);
}
