/** Which of two connections to one peer is kept. */
import type { PeerLink } from "../../wire/types.ts";
import { hostKey } from "./address.ts";

/** A connection whose handshake is done. */
interface Connected {
  readonly link: PeerLink | null;
  readonly info: { readonly peerId: Uint8Array } | null;
}

/**
 * Of two connections with one peer id the one that ends; null where both stay. Both ends keep the one that the larger
 * peer id opened.
 */
export function redundantOf<T extends Connected>(older: T, newer: T, ownPeerId: Uint8Array): T | null {
  const [host, newHost] = [hostKey(older.link!.remote.host), hostKey(newer.link!.remote.host)];
  // A peer id proves nothing: a host that copied it must neither end a connection with its owner nor keep the owner out.
  // Only a machine with IPv6 has many addresses as a rule, and need not be connected by each of them.
  if (host !== newHost) return host.includes(":") || newHost.includes(":") ? newer : null;
  if (older.link!.incoming === newer.link!.incoming) return newer;
  const theirs = newer.info!.peerId;
  let at = 0;
  while (at < 20 && theirs[at] === ownPeerId[at]) at++;
  const theirsIsLarger = at < 20 && theirs[at]! > ownPeerId[at]!;
  return newer.link!.incoming === theirsIsLarger ? older : newer;
}
