/** One connection of a live swarm: connects its link with the node. */
import type { MillraceError } from "../../errors.ts";
import type { KnownAddress } from "../../swarm/neighbours/address-book.ts";
import { Neighbour, type NeighbourSwarm } from "../../swarm/neighbours/neighbour.ts";
import type { Reach } from "../../swarm/neighbours/reachability.ts";
import { BLOCK_BYTES, type ExtendedHandshake, type PeerLink, type PeerLinkHandlers } from "../../wire/types.ts";
import type { LiveNode } from "../node/live-node.ts";
import { type LiveLane, type LiveLink, MAX_SPARES } from "../node/neighbour/live-lane.ts";
import type { LivePeer } from "../node/neighbour/live-peer.ts";
import { blockKey } from "../node/stream/substreams.ts";
import { decodePunchMessage, type MemberMessage } from "../punch-messages.ts";
import { decodeReachMessage } from "../reach-messages.ts";
import { decodeSecondMessage } from "../second-message.ts";
import { decodeSourceMessage } from "../source-message.ts";
import type { Uplink } from "./uplink.ts";

/** All neighbours of the live swarm (`LivePeers`). */
export interface LiveNeighbours extends NeighbourSwarm {
  readonly node: LiveNode;
  readonly uplink: Uplink;
  /** Called when the peer has become a member. */
  joined(session: LivePeerSession): void;
  memberMessage(session: LivePeerSession, message: MemberMessage): void;
  /** Called when there is another connection to the member of `first`. */
  spareJoined(first: LivePeerSession): void;
}

/** A member of one live swarm, or a peer that fetches its metadata. */
export class LivePeerSession extends Neighbour<LiveNeighbours> implements PeerLinkHandlers {
  /** Members of a live swarm say nothing of the kind. */
  readonly torrent = null;
  /** The node's view of it; null while it speaks no `live1`. */
  peer: LivePeer | null = null;
  /** Whether others can connect to it, by what it reported or we saw. */
  reach: Reach;
  /** True when the connection came by hole punching: nobody can connect to the peer. */
  isPunched = false;
  /** Further connections to the same member. */
  readonly spares: LivePeerSession[] = [];
  /** The first one, when this is another. */
  first: LivePeerSession | null = null;
  /** This connection as the node sees it, when it is another. */
  lane: LiveLane | null = null;
  #target: Uint8Array | null = null;

  constructor(swarm: LiveNeighbours, id: number, host: string, address: KnownAddress | null) {
    super(swarm, id, host, address);
    this.reach = address === null ? "unknown" : "open";
  }

  /** True when the peer speaks `live1`. */
  override get isMember(): boolean {
    return this.peer !== null;
  }

  get isSeed(): boolean {
    return false;
  }

  override get isUnreachable(): boolean {
    return this.reach === "closed";
  }

  override get listenPort(): number | null {
    const isKnown = this.isPunched || this.first !== null || this.extensions?.live == null;
    return isKnown ? null : super.listenPort;
  }

  // Handlers of the link.

  override extended(info: ExtendedHandshake): void {
    const isFirst = this.extensions === null;
    super.extended(info);
    // Without BEP 6 there is no way to reject a request that isn't served.
    if (!isFirst || this.isClosed || info.live === null || !this.info!.fast) return;
    if (this.first !== null) return this.#joinFirst(this.first);
    this.link!.unchoke();
    this.link!.interested();
    this.peer = this.swarm.node.connected(new SessionLink(this, this.swarm), { ...info.live, host: this.host });
    if (this.incoming && info.live.isOpen !== undefined) this.reach = info.live.isOpen ? "open" : "closed";
    this.swarm.joined(this);
  }

  /** This is another connection to the member of `first`. */
  #joinFirst(first: LivePeerSession): void {
    if (first.peer === null || first.spares.length >= MAX_SPARES) return this.drop();
    first.spares.push(this);
    this.link!.unchoke();
    this.link!.interested();
    this.lane = this.swarm.node.spareOpened(first.peer, new SessionLink(this, this.swarm));
    this.swarm.spareJoined(first);
  }

  /** The member at the far end, whichever of its connections this is. */
  get #member(): LivePeer | null {
    return this.first === null ? this.peer : this.first.spares.includes(this) ? this.first.peer : null;
  }

  live(message: Uint8Array): void {
    const member = this.#member;
    if (member === null) return;
    const known = decodeReachMessage(message) ?? decodePunchMessage(message) ?? decodeSourceMessage(message) ??
      decodeSecondMessage(message);
    if (known === null) this.swarm.node.message(member, message);
    else if (this.first === null) this.swarm.memberMessage(this, known);
  }

  request(seq: number, offset: number, length: number): void {
    if (this.peer === null) this.link!.reject(seq, offset, length);
    else this.swarm.node.requested(this.peer, seq, offset, length);
  }

  cancel(seq: number, offset: number): void {
    if (this.peer !== null) this.swarm.node.cancelled(this.peer, seq, offset);
  }

  unwanted(seq: number, offset: number): void {
    this.cancel(seq, offset);
  }

  reject(seq: number, offset: number): void {
    // A withdrawn request is rejected too (BEP 6); that does not count against the peer.
    const isAwaited = this.peer?.requests.has(blockKey(seq, offset / BLOCK_BYTES)) ?? false;
    if (isAwaited) this.swarm.node.rejected(this.peer!, seq, offset);
  }

  blockTarget(_seq: number, _offset: number, length: number): Uint8Array | null {
    return this.#target = this.#member !== null && length <= BLOCK_BYTES ? new Uint8Array(length) : null;
  }

  block(seq: number, offset: number, length: number): void {
    const target = this.#target;
    this.#target = null;
    this.swarm.downloaded(this, length);
    const member = this.#member;
    if (member !== null && target !== null) this.swarm.node.block(member, seq, offset, target);
  }

  protected left(): void {
    for (const spare of [...this.spares]) spare.drop();
    const { first } = this;
    const at = first?.spares.indexOf(this) ?? -1;
    if (at >= 0) {
      first!.spares.splice(at, 1);
      if (first!.peer !== null && this.lane !== null) this.swarm.node.spareClosed(first!.peer, this.lane);
    }
    if (this.peer !== null) this.swarm.node.disconnected(this.peer);
  }
}

/** A session as the node sees it. */
class SessionLink implements LiveLink {
  readonly #session: LivePeerSession;
  readonly #swarm: LiveNeighbours;
  readonly #link: PeerLink;

  constructor(session: LivePeerSession, swarm: LiveNeighbours) {
    this.#session = session;
    this.#swarm = swarm;
    this.#link = session.link!;
  }

  send(message: Uint8Array): void {
    this.#link.sendLive(message);
  }

  request(seq: number, offset: number, length: number): void {
    this.#link.request(seq, offset, length);
  }

  cancel(seq: number, offset: number, length: number): void {
    this.#link.cancel(seq, offset, length);
  }

  reject(seq: number, offset: number, length: number): void {
    this.#link.reject(seq, offset, length);
  }

  piece(seq: number, offset: number, data: Uint8Array): void {
    // Encryption works in place, and other peers get the same bytes.
    this.#link.push(seq, offset, this.#session.info!.encrypted ? data.slice() : data);
    this.#swarm.uploaded(data.length);
    this.#swarm.uplink.spend(data.length);
  }

  close(error: MillraceError | null): void {
    this.#session.drop(error ?? undefined);
  }
}
