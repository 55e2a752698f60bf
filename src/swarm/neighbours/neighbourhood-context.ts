/** What the neighbours of a swarm need of the engine: less than the swarms themselves (`SwarmContext`). */
import type { ExternalAddresses } from "../../discovery/external-addresses.ts";
import type { Discovery } from "../../discovery/types.ts";
import type { Ports, TcpConnection } from "../../ports.ts";
import type { ConnectPeerOptions, EncryptionMode } from "../../wire/options.ts";
import type { PeerLink } from "../../wire/types.ts";
import type { BanList } from "./bans.ts";
import type { DialRule } from "./dial-rule.ts";
import type { DialSlots } from "./dial-slots.ts";
import type { TokenBucket } from "../token-bucket.ts";

/** The members of `SwarmContext` that `Neighbourhood` uses. */
export interface NeighbourhoodContext {
  readonly ports: Ports;
  readonly discovery: Discovery | null;
  readonly peerId: Uint8Array;
  readonly encryption: EncryptionMode;
  readonly pex: boolean;
  readonly bans: BanList;
  readonly dialRule: DialRule;
  /** Learns our own addresses as peers see them. */
  readonly externalAddresses: ExternalAddresses;
  readonly slots: DialSlots;
  readonly downloadBucket: TokenBucket;
  readonly connectPeer: (connection: TcpConnection, options: ConnectPeerOptions) => PeerLink;
  /** An exception of ours outside a timer: ends the swarm whose context this is, with a reason. */
  failed(error: unknown): void;
  /** Port by which others reach us, as far as we know; null when none accepts peers. */
  listenPort(): number | null;
  /** How many more peers all swarms together may have. */
  globalRoom(): number;
}
