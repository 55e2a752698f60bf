/** One connection of a live swarm: connects its link with the node. */
import type { MillraceError } from "../../errors.ts";
import type { SocketAddress } from "../../ports.ts";
import type { KnownAddress } from "../../swarm/address-book.ts";
import type { Reach } from "../../swarm/reachability.ts";
import { type PauseReason, Pauses } from "../../wire/pauses.ts";
import { BLOCK_BYTES, type ExtendedHandshake, type PeerLink, type PeerLinkHandlers } from "../../wire/types.ts";
import type { LiveNode } from "../node/live-node.ts";
import type { LiveLink, LivePeer } from "../node/live-peer.ts";
import { blockKey } from "../node/substreams.ts";
import { decodePunchMessage, type MemberMessage } from "../punch-messages.ts";
import { decodeReachMessage } from "../reach-messages.ts";
import { decodeSourceMessage } from "../source-message.ts";
import type { Uplink } from "./uplink.ts";

/** What a session needs from its swarm. */
export interface LiveSessionHost {
  readonly node: LiveNode;
  readonly uplink: Uplink;
  now(): number;
  /** Its handshake is done. */
  ready(session: LiveSession): void;
  extended(session: LiveSession): void;
  /** It is a member. */
  joined(session: LiveSession): void;
  memberMessage(session: LiveSession, message: MemberMessage): void;
  downloaded(session: LiveSession, bytes: number): void;
  uploaded(bytes: number): void;
  peersLearnt(session: LiveSession, added: readonly SocketAddress[]): void;
  dhtNode(address: SocketAddress): void;
  closedSession(session: LiveSession, error: Error | null): void;
}

/** A member of one live swarm, or a peer that fetches its metadata. */
export class LiveSession implements PeerLinkHandlers {
  readonly id: number;
  /** The host under which its place among the neighbours is booked. */
  readonly host: string;
  readonly startedMs: number;
  /** Where it was dialled; null for incoming peers until they report their port. */
  address: KnownAddress | null;
  link: PeerLink | null = null;
  info: { readonly peerId: Uint8Array; readonly fast: boolean; readonly encrypted: boolean } | null = null;
  extensions: ExtendedHandshake | null = null;
  /** The node's view of it; null while it speaks no `live1`. */
  peer: LivePeer | null = null;
  /** Whether others can connect to it, as far as it or we know. */
  reach: Reach;
  /** It came by hole punching: nobody can connect to its end. */
  readonly isPunched: boolean;
  readonly isSeed = false;
  private readonly swarm: LiveSessionHost;
  private readonly isIncoming: boolean;
  private target: Uint8Array | null = null;
  private readonly pauses = new Pauses();
  private isClosed = false;

  constructor(swarm: LiveSessionHost, id: number, host: string, address: KnownAddress | null, isPunched = false) {
    this.swarm = swarm;
    this.id = id;
    this.host = host;
    this.address = address;
    this.isIncoming = address === null;
    this.isPunched = isPunched;
    this.reach = address === null ? "unknown" : "open";
    this.startedMs = swarm.now();
  }

  get isReady(): boolean {
    return this.info !== null && !this.isClosed;
  }

  get isUnreachable(): boolean {
    return this.reach === "closed";
  }

  /** True for an incoming connection. */
  get incoming(): boolean {
    return this.isIncoming;
  }

  /** Stops reading from the peer while at least one reason to do so exists. */
  setPaused(reason: PauseReason, value: boolean): void {
    this.pauses.set(this.link, reason, value);
  }

  /** Hangs up. */
  drop(error?: Error): void {
    if (this.link === null) this.close(error ?? null);
    else this.link.close(error);
  }

  // Handlers of the link.

  ready(info: { peerId: Uint8Array; fast: boolean; dht: boolean; encrypted: boolean }): void {
    this.info = info;
    this.swarm.ready(this);
  }

  extended(info: ExtendedHandshake): void {
    const isFirst = this.extensions === null;
    this.extensions = info;
    this.swarm.extended(this);
    // Without BEP 6 there is no way to reject a request that isn't served.
    if (!isFirst || this.isClosed || info.live === null || !this.info!.fast) return;
    this.link!.unchoke();
    this.link!.interested();
    this.peer = this.swarm.node.connected(new SessionLink(this, this.swarm), { ...info.live, host: this.host });
    if (this.isIncoming && info.live.isOpen !== undefined) this.reach = info.live.isOpen ? "open" : "closed";
    this.swarm.joined(this);
  }

  live(message: Uint8Array): void {
    if (this.peer === null) return;
    const known = decodeReachMessage(message) ?? decodePunchMessage(message) ?? decodeSourceMessage(message);
    if (known === null) this.swarm.node.message(this.peer, message);
    else this.swarm.memberMessage(this, known);
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
    return this.target = this.peer !== null && length <= BLOCK_BYTES ? new Uint8Array(length) : null;
  }

  block(seq: number, offset: number, length: number): void {
    const { target } = this;
    this.target = null;
    this.swarm.downloaded(this, length);
    if (this.peer !== null && target !== null) this.swarm.node.block(this.peer, seq, offset, target);
  }

  dhtPort(port: number): void {
    this.swarm.dhtNode({ host: this.link!.remote.host, port });
  }

  peers(added: readonly SocketAddress[]): void {
    this.swarm.peersLearnt(this, added);
  }

  close(error: Error | null): void {
    if (this.isClosed) return;
    this.isClosed = true;
    if (this.peer !== null) this.swarm.node.disconnected(this.peer);
    this.swarm.closedSession(this, error);
  }

  // Members of a live swarm use none of these.

  choke(): void {}
  unchoke(): void {}
  interested(): void {}
  uninterested(): void {}
  bitfield(): void {}
  haveAll(): void {}
  haveNone(): void {}
  have(): void {}
  allowedFast(): void {}
  metadata(): void {}
  metadataFailed(): void {}
}

/** A session as the node sees it. */
class SessionLink implements LiveLink {
  private readonly session: LiveSession;
  private readonly swarm: LiveSessionHost;
  private readonly link: PeerLink;

  constructor(session: LiveSession, swarm: LiveSessionHost) {
    this.session = session;
    this.swarm = swarm;
    this.link = session.link!;
  }

  send(message: Uint8Array): void {
    this.link.sendLive(message);
  }

  request(seq: number, offset: number, length: number): void {
    this.link.request(seq, offset, length);
  }

  cancel(seq: number, offset: number, length: number): void {
    this.link.cancel(seq, offset, length);
  }

  reject(seq: number, offset: number, length: number): void {
    this.link.reject(seq, offset, length);
  }

  piece(seq: number, offset: number, data: Uint8Array): void {
    // Encryption works in place, and other peers get the same bytes.
    this.link.push(seq, offset, this.session.info!.encrypted ? data.slice() : data);
    this.swarm.uploaded(data.length);
    this.swarm.uplink.spend(data.length);
  }

  close(error: MillraceError | null): void {
    this.session.drop(error ?? undefined);
  }
}
