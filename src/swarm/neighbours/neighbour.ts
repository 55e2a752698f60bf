/** One connection of a swarm, of a torrent or a broadcast: what both kinds know of the far end. */
import { toHex } from "../../bytes/hex.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock, SocketAddress } from "../../ports.ts";
import type { HolePunchMessage } from "../../wire/hole-punch.ts";
import { type PauseReason, Pauses } from "../../wire/pauses.ts";
import type { ExtendedHandshake, PeerLink } from "../../wire/types.ts";
import type { KnownAddress } from "./address-book.ts";

/** What a connection reports to its swarm; `Neighbourhood` implements it. */
export interface NeighbourSwarm {
  readonly clock: Clock;
  /** Its handshake is done. */
  ready(neighbour: Neighbour): void;
  /** The neighbour sent an extended handshake; others may follow. */
  extended(neighbour: Neighbour): void;
  downloaded(neighbour: Neighbour, bytes: number): void;
  uploaded(bytes: number): void;
  peersLearnt(neighbour: Neighbour, added: readonly SocketAddress[]): void;
  dhtNode(address: SocketAddress): void;
  /** The neighbour brings peers together, or asks for that (BEP 55). */
  holePunch?(neighbour: Neighbour, message: HolePunchMessage): void;
  ended(neighbour: Neighbour, error: Error | null): void;
  /** Handling the end of a neighbour failed by a fault of ours. */
  failed(error: unknown): void;
}

/** What the peer's handshake said: its id and reserved bits. */
export interface HandshakeInfo {
  readonly peerId: Uint8Array;
  readonly fast: boolean;
  readonly dht: boolean;
  readonly encrypted: boolean;
}

/** A neighbour from its connection to its end. Subclasses handle the messages of their kind of swarm. */
export abstract class Neighbour<Swarm extends NeighbourSwarm = NeighbourSwarm> {
  /** Its number in the swarm. */
  readonly id: number;
  readonly host: string;
  /** True when the neighbour dialled us, or others brought us together. */
  readonly incoming: boolean;
  /** Monotonic ms. */
  readonly startedMs: number;
  /** The address it was dialled at; null for incoming ones until they announce their port. */
  address: KnownAddress | null;
  /** Set in the turn that creates the neighbour. */
  link: PeerLink | null = null;
  info: HandshakeInfo | null = null;
  extensions: ExtendedHandshake | null = null;
  /** We parted from it, so its address is not dialled for a while. */
  isResting = false;
  protected readonly swarm: Swarm;
  readonly #pauses = new Pauses();
  #isClosed = false;

  constructor(swarm: Swarm, id: number, host: string, address: KnownAddress | null) {
    this.swarm = swarm;
    this.id = id;
    this.host = host;
    this.address = address;
    this.incoming = address === null;
    this.startedMs = swarm.clock.monotonic();
  }

  /** Its handshake is done, and it is still connected. */
  get isReady(): boolean {
    return this.info !== null && !this.#isClosed;
  }

  /** The id in its handshake; null before that. */
  get peerIdHex(): string | null {
    return this.info === null ? null : toHex(this.info.peerId);
  }

  /** True when the neighbour takes part in the swarm, so that others hear of it. */
  get isMember(): boolean {
    return this.isReady;
  }

  /** True when the neighbour has every piece. */
  abstract get isSeed(): boolean;

  /** Nobody can connect to it, so its address is not passed on. */
  get isUnreachable(): boolean {
    return false;
  }

  /** The port at which others can connect to it, as it says. */
  get listenPort(): number | null {
    return this.extensions?.listenPort ?? null;
  }

  protected get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Stops reading from it while there is at least one reason to. */
  setPaused(reason: PauseReason, value: boolean): void {
    this.#pauses.set(this.link, reason, value);
  }

  /** Hangs up. */
  drop(error?: Error): void {
    if (this.link === null) this.close(error ?? null);
    else this.link.close(error);
  }

  /** Hangs up because it is of no use for a while: its address rests. */
  part(reason: string): void {
    this.isResting = true;
    this.drop(new MillraceError("closed", `parted: ${reason}`));
  }

  /** The connection is over. */
  protected abstract left(): void;

  // Handlers of the link.

  ready(info: HandshakeInfo): void {
    this.info = info;
    this.swarm.ready(this);
  }

  extended(info: ExtendedHandshake): void {
    this.extensions = info;
    this.swarm.extended(this);
  }

  dhtPort(port: number): void {
    this.swarm.dhtNode({ host: this.host, port });
  }

  peers(added: readonly SocketAddress[]): void {
    this.swarm.peersLearnt(this, added);
  }

  holePunch(message: HolePunchMessage): void {
    this.swarm.holePunch?.(this, message);
  }

  close(error: Error | null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.left();
      this.swarm.ended(this, error);
    } catch (fault) {
      this.swarm.failed(fault);
    }
  }
}
