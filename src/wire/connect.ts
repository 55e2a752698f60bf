import type { TcpConnection } from "../ports.ts";
import type { AcceptPeerOptions, ConnectPeerOptions } from "./options.ts";
import { WireLink } from "./peer-link.ts";
import { hex20 } from "./peer-id.ts";
import type { PeerLink } from "./types.ts";

/**
 * Shakes hands over a connection that we made. Returns at once: `handlers.ready` follows, or `handlers.close` with
 * `timeout`, `connection_failed`, `protocol_violation`, `conflict` (we reached ourselves) or the signal's reason. Until
 * `ready`, only `close`, `pause`, `resume`, `fetchMetadata`, `setMetadata` and `setPieceCount` have an effect; without
 * encryption also `bitfield`, `interested`, `uninterested`, `request` and `cancel`: called right away, they leave in one
 * packet with our handshake and save a round trip each.
 * Throws `invalid_argument` for an infohash or peer id that is not 20 bytes.
 */
export function connectPeer(connection: TcpConnection, options: ConnectPeerOptions): PeerLink {
  const infohashHex = hex20(options.infohash);
  hex20(options.peerId);
  const link = new WireLink(connection, false, options, {
    candidates: () => [],
    resolve: () => ({ settings: options, handlers: options.handlers }),
    orphaned: () => {},
  });
  link.start(infohashHex);
  return link;
}

/**
 * Shakes hands over an incoming connection, plain or encrypted, and gives the link to the torrent that the peer names.
 * `close` gives up; it does nothing once a torrent has the link.
 */
export function acceptPeer(connection: TcpConnection, options: AcceptPeerOptions): { close(): void } {
  let attached = false;
  const link = new WireLink(connection, true, options, {
    candidates: () => options.candidates(),
    resolve: (made, infohashHex) => {
      const target = options.lookup(infohashHex, connection.remote);
      if (target === null) return null;
      attached = true;
      return { settings: target, handlers: target.attach(made) };
    },
    orphaned: (error) => options.failed?.(error, connection.remote),
  });
  link.start(null);
  return { close: () => attached || link.close() };
}
