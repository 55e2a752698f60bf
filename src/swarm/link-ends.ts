/** What every kind of swarm does with connections and their addresses when they begin and end. */
import { hasCode } from "../errors.ts";
import type { PeerLink } from "../wire/types.ts";
import type { AddressBook, KnownAddress } from "./address-book.ts";

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

/** Records in the book how a connection to `entry` ended; `greeted`: its handshake was done. Times are monotonic ms. */
export function settleAddress(
  book: AddressBook,
  entry: KnownAddress,
  end: { readonly greeted: boolean; readonly error: Error | null; readonly mayFlip: boolean },
  nowMs: number,
): void {
  // During a handshake, `conflict` means that our own peer id answered.
  if (hasCode(end.error, "conflict") && !end.greeted) entry.state = "self";
  else if (end.greeted) book.ended(entry, nowMs);
  else if (end.mayFlip && !entry.flipEncryption) book.flip(entry, nowMs);
  else {
    entry.flipEncryption = false;
    book.failed(entry, nowMs);
  }
}
