/** The handshake on a connection that hole punching made, at the end that waited for it. */
import type { SocketAddress, TcpConnection } from "../../ports.ts";
import type { SwarmContext } from "../../swarm/context.ts";
import { acceptPeer } from "../../wire/mod.ts";
import type { LinkSettings } from "../../wire/options.ts";
import type { PeerLink, PeerLinkHandlers } from "../../wire/types.ts";

/** What a swarm gives to a peer that it takes. */
export interface Admitted<Handlers extends PeerLinkHandlers = PeerLinkHandlers> {
  readonly settings: LinkSettings;
  readonly attach: (link: PeerLink) => Handlers;
}

/** Shakes hands; only the broadcast that the connection was arranged for can be named in the handshake. */
export function acceptPunched(
  context: SwarmContext,
  infohashHex: string,
  connection: TcpConnection,
  admit: (remote: SocketAddress) => Admitted | null,
): void {
  acceptPeer(connection, {
    clock: context.ports.clock,
    encryption: context.encryption,
    candidates: () => [infohashHex],
    lookup: (named, remote) => {
      const taken = named === infohashHex ? admit(remote) : null;
      return taken === null ? null : { ...taken.settings, attach: taken.attach };
    },
  });
}
