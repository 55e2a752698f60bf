/** A member of a live swarm over a real connection that says and sends what a test likes. */
import { encodeLiveMessage, type LiveMessage } from "../../src/live/messages.ts";
import type { Ports, SocketAddress } from "../../src/ports.ts";
import type { LiveMetainfo } from "../../src/metainfo/live.ts";
import { acceptPeer } from "../../src/wire/mod.ts";
import { createPeerId } from "../../src/wire/peer-id.ts";
import type { LiveOffer, PeerLink, PeerLinkHandlers } from "../../src/wire/types.ts";
import { idleHandlers } from "../swarm/support/bad-peer.ts";

/** One of them, listening. */
export interface Liar {
  readonly address: SocketAddress;
  /** Connections to it. */
  readonly links: PeerLink[];
  /** Those that were ended. */
  readonly ended: PeerLink[];
  /** Requests that it got. */
  readonly requests: { seq: number; offset: number }[];
  readonly rejects: number;
  close(): Promise<void>;
}

/** What it does beyond listening. */
export interface LiarOptions {
  /** Its bans are to hit nobody else: an address of this machine that no other peer has. */
  readonly host?: string;
  readonly offer?: LiveOffer;
  /** Both handshakes are done. */
  readonly met: (link: PeerLink, say: (message: LiveMessage) => void) => void;
  readonly handlers?: Partial<PeerLinkHandlers>;
}

/** Starts one for `metainfo`. */
export async function liar(ports: Ports, metainfo: LiveMetainfo, options: LiarOptions): Promise<Liar> {
  const links: PeerLink[] = [];
  const ended: PeerLink[] = [];
  const requests: { seq: number; offset: number }[] = [];
  let rejects = 0;
  const listener = await ports.tcp.listen({ host: options.host ?? "127.0.0.2", port: 0 }, (connection) => {
    acceptPeer(connection, {
      clock: ports.clock,
      candidates: () => [metainfo.infohashHex],
      lookup: () => ({
        infohash: metainfo.infohash,
        peerId: createPeerId(),
        live: options.offer ?? { role: "viewer", upBytesPerS: 10_000_000 },
        attach: (link) => {
          links.push(link);
          return idleHandlers({
            extended: () => {
              link.unchoke();
              options.met(link, (message) => link.sendLive(encodeLiveMessage(message)));
            },
            request: (seq, offset) => void requests.push({ seq, offset }),
            reject: () => void rejects++,
            close: () => void ended.push(link),
            ...options.handlers,
          });
        },
      }),
    });
  });
  return {
    address: listener.address,
    links,
    ended,
    requests,
    get rejects() {
      return rejects;
    },
    close: async () => {
      for (const link of links) link.close();
      await listener.close();
    },
  };
}
