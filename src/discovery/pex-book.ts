/** Peer exchange (BEP 11): what we report to each peer about our other connections, and how much of its messages we believe. */
import type { SocketAddress } from "../ports.ts";
import { addressKey } from "./addresses.ts";

/** Flag of an added peer (BEP 11): it is a seeder or uploads only. */
export const PEX_SEED = 0x02;
/** Flag of an added peer: it is reachable, we connected to it. */
export const PEX_REACHABLE = 0x10;

/** BEP 11: at most 50 added and 50 dropped peers per message. */
const MAX_PEX_PEERS = 50;

/** BEP 11: at least a minute between two messages. */
export const PEX_INTERVAL_MS = 60_000;

/** Peers and recipients tracked; more than any swarm of ours has connections. */
const MAX_TRACKED = 500;

/** A message may come this much early: network delay shifts the sender's minute against ours. */
const PEX_TOLERANCE_MS = 15_000;

/** A peer in a message. */
export interface PexPeer extends SocketAddress {
  /** Sum of the `PEX_*` flags. */
  readonly flags: number;
}

/** A message to send now. */
export interface PexMessage {
  readonly added: readonly PexPeer[];
  readonly dropped: readonly SocketAddress[];
}

interface Recipient {
  /** The peers reported to it, by address key. */
  readonly told: Map<string, SocketAddress>;
  lastSentMs: number;
  lastReceivedMs: number;
}

/** Bookkeeping for one swarm, without effects; times are the caller's monotonic milliseconds. Not for private torrents. */
export class PexBook {
  readonly #connected = new Map<string, PexPeer>();
  readonly #recipients = new Map<string, Recipient>();

  /** We are connected to the peer that listens at `address`; call again when its flags change. */
  add(address: SocketAddress, flags: number): void {
    const key = addressKey(address);
    if (this.#connected.size >= MAX_TRACKED && !this.#connected.has(key)) return;
    this.#connected.set(key, { host: address.host, port: address.port, flags });
  }

  /** The connection to `address` ended. */
  remove(address: SocketAddress): void {
    this.#connected.delete(addressKey(address));
  }

  /** `recipient` (any stable name of a connection) gets no more messages. */
  forget(recipient: string): void {
    this.#recipients.delete(recipient);
  }

  /**
   * Returns the message for `recipient`, which listens at `own` if that is known; null when nothing changed for it, its
   * minute is not over, or too many recipients are tracked. The message counts as sent.
   */
  messageFor(recipient: string, own: SocketAddress | null, nowMs: number): PexMessage | null {
    const entry = this.#recipient(recipient);
    if (entry === null || nowMs - entry.lastSentMs < PEX_INTERVAL_MS) return null;
    const ownKey = own === null ? null : addressKey(own);
    const dropped: SocketAddress[] = [];
    for (const [key, address] of entry.told) {
      if (dropped.length === MAX_PEX_PEERS) break;
      if (this.#connected.has(key)) continue;
      dropped.push(address);
      entry.told.delete(key);
    }
    const added: PexPeer[] = [];
    for (const [key, peer] of this.#connected) {
      if (added.length === MAX_PEX_PEERS) break;
      if (key === ownKey || entry.told.has(key)) continue;
      added.push(peer);
      entry.told.set(key, { host: peer.host, port: peer.port });
    }
    if (added.length === 0 && dropped.length === 0) return null;
    entry.lastSentMs = nowMs;
    return { added, dropped };
  }

  /**
   * Returns the peers added by `sender` that we believe: the first 50, or none if it sends more often than BEP 11 allows.
   * So one peer cannot flood the swarm with addresses.
   */
  accept(sender: string, added: readonly PexPeer[], nowMs: number): readonly PexPeer[] {
    const entry = this.#recipient(sender);
    if (entry === null || nowMs - entry.lastReceivedMs < PEX_INTERVAL_MS - PEX_TOLERANCE_MS) return [];
    entry.lastReceivedMs = nowMs;
    return added.slice(0, MAX_PEX_PEERS);
  }

  #recipient(name: string): Recipient | null {
    let entry = this.#recipients.get(name);
    if (entry === undefined) {
      if (this.#recipients.size >= MAX_TRACKED) return null;
      entry = { told: new Map(), lastSentMs: -Infinity, lastReceivedMs: -Infinity };
      this.#recipients.set(name, entry);
    }
    return entry;
  }
}
