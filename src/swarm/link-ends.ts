/** Which of two connections to one peer is kept. */
import type { PeerLink } from "../wire/types.ts";

/** A connection whose handshake is done. */
interface Connected {
  readonly link: PeerLink | null;
  readonly info: { readonly peerId: Uint8Array } | null;
}

/** Of two connections to one peer, both ends keep the one that the larger peer id opened. Returns the other one. */
export function redundantOf<T extends Connected>(older: T, newer: T, ownPeerId: Uint8Array): T {
  if (older.link!.incoming === newer.link!.incoming) return newer;
  // A peer id proves nothing: a host that copied it must not be able to end a connection with its owner.
  if (older.link!.remote.host !== newer.link!.remote.host) return newer;
  const theirs = newer.info!.peerId;
  let at = 0;
  while (at < 20 && theirs[at] === ownPeerId[at]) at++;
  const theirsIsLarger = at < 20 && theirs[at]! > ownPeerId[at]!;
  return newer.link!.incoming === theirsIsLarger ? older : newer;
}
