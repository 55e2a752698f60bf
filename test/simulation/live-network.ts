/**
 * A network on virtual time between real `LiveNode`s. Each host has an uplink that its connections share by turns; each
 * connection has a send buffer that takes whatever it is given at once, a latency of its own, and loss, which costs time.
 */
import type { MillraceError } from "../../src/errors.ts";
import { decodeBundle, encodeBundle } from "../../src/live/bundle.ts";
import { decodeLiveMessage, encodeLiveMessage, type PlaceMessage } from "../../src/live/messages.ts";
import { LiveNode } from "../../src/live/node/live-node.ts";
import type { LiveNodeOptions } from "../../src/live/node/live-options.ts";
import type { LiveLink, LivePeer, LivePeerInfo } from "../../src/live/node/neighbour/live-peer.ts";
import { PATH_WORDS } from "../../src/live/node/neighbour/place.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import type { EventWheel } from "./event-wheel.ts";
import { logOf, type MessageLog } from "./message-log.ts";
import { keepsBlocks, LIAR_UP_SHARE, type LiarKind, liedPlace } from "./lies.ts";
import { MESSAGE_NAMES, type MessageName, SentMessages } from "./sent-messages.ts";
import type { Region } from "./regions.ts";
import { type LineQueue, SimLine } from "./sim-line.ts";
import { EPOCH_MS, POISON, SIMULATED_VERIFIER } from "./simulated-pieces.ts";
import { PacketLoss, type PacketLossOptions, type PacketSender, TcpStream } from "./tcp-stream.ts";

export { EPOCH_MS, GENUINE, POISON, SIMULATED_VERIFIER, simulatedHeader } from "./simulated-pieces.ts";

/** Members of the clique of each run. */
const CLIQUES = new WeakMap<EventWheel, SimHost[]>();
/** Tags that one of them shows in one path: with more, the path would have too many bits to be believed. */
const SHOWN_TAGS = 6;

/** First bytes of PLACE and FILL. */
const [PLACE, FILL] = [5, 13];
/** Length prefix, message id and extension id of a message of `live1` (BEP 3, BEP 10); length of a message in a BUNDLE. */
const [FRAME_BYTES, BUNDLED_BYTES] = [6, 2];
/** Ids of the standard messages (BEP 3, BEP 6), as the log holds them. */
const [REQUEST, PIECE, CANCEL, REJECT] = [6, 7, 8, 16];
/** A request, cancel or reject with its length prefix. */
const STANDARD_BYTES = 17;

/** How a host behaves. */
export interface HostOptions {
  readonly liar?: LiarKind;
  readonly role: "source" | "viewer";
  readonly uplinkBytesPerS: number;
  /** How much its router queues before it drops packets, ms. Messages wait there for blocks of other connections. Default 0: it does neither. */
  readonly routerMs?: number;
  /** What its user says that it may send, bytes/s. Default: nothing is said. */
  readonly limitBytesPerS?: number;
  readonly poisons?: boolean;
  /** Share of packets that is lost on the way: what that costs on average. Default 0. */
  readonly loss?: number;
  /** The same, with each packet of each connection followed by itself. Default: none is lost. */
  readonly packetLoss?: PacketLossOptions;
  /** Where it lives; absent: nowhere in particular. */
  readonly region?: Region;
  /** Nobody can connect to it; it can to those who are not so. Default false. */
  readonly isClosed?: boolean;
  /** Its NAT keeps one port per socket, so that it can meet others like it by hole punching. */
  readonly isPunchable?: boolean;
  /** How far its wall clock is ahead of the true time, ms. Default 0. */
  readonly clockAheadMs?: number;
}

/** Payload of a packet. */
const PACKET_BYTES = 1448;
/**
 * A connection that loses packets carries this share of what the formula says. Eight blocks always under way with a round trip
 * of 70 ms and a loss of 1 % saw 221 KB/s with Linux and Reno, and 271 with CUBIC; the formula says 253.
 */
const WINDOW_SHARE = 0.9;
/** Schedulers keep shorter ways waiting, ms. */
const LEAST_LATENCY_MS = 10;
/** What is sent again for want of an acknowledgement is sent after this and a round trip, ms: the usual least of TCP. */
const RETRANSMIT_MS = 200;
/** A lost SYN is sent again after this, ms (RFC 6298). */
const SYN_MS = 1000;
/** Packets behind a lost one that have its sender send it again at once. */
const FAST_RETRANSMIT_PACKETS = 3;
/** One-way trips until both ends of a new connection can speak `live1`: TCP, the handshake, and its extensions. */
export const SET_UP_TRIPS = 4;

/** A machine with a node on it. */
export class SimHost implements PacketSender {
  readonly node: LiveNode;
  readonly options: HostOptions;
  readonly links = new Map<SimHost, SimLink>();
  readonly banned = new Set<SimHost>();
  readonly bornMs: number;
  readonly line: SimLine;
  readonly random: () => number;
  /** False when it has left, or takes and sends nothing any more without a word. */
  alive = true;
  /** Connections to closed hosts that it is trying. */
  dialing = 0;
  /** Messages that it has sent. */
  readonly sent = new SentMessages();
  /** Called when a piece has come. */
  onPiece: () => void = () => {};
  readonly loss: PacketLoss;
  readonly #liarBytesPerS: number;
  readonly #clique: SimHost[];
  static #made = 0;
  /** Names its address. */
  readonly name: string;

  constructor(queue: EventWheel, options: HostOptions, stream: LiveNodeOptions["stream"], random: () => number) {
    this.options = options;
    this.random = random;
    this.loss = new PacketLoss(options.packetLoss ?? { share: 0 }, random);
    this.#liarBytesPerS = LIAR_UP_SHARE * stream.bytesPerS;
    this.line = new SimLine(queue, options.uplinkBytesPerS, options.routerMs);
    this.bornMs = queue.nowMs;
    this.#clique = CLIQUES.get(queue) ?? [];
    CLIQUES.set(queue, this.#clique);
    if (options.liar === "clique") this.#clique.push(this);
    this.name = `host ${SimHost.#made++}`;
    this.node = new LiveNode({
      clock: {
        now: () => EPOCH_MS + (options.clockAheadMs ?? 0) + Math.floor(queue.nowMs),
        monotonic: () => queue.nowMs,
        setTimeout: (run, ms) => queue.timer(run, ms),
      },
      verifier: SIMULATED_VERIFIER,
      random,
      role: options.role,
      stream,
      onPiece: () => this.onPiece(),
      // A broadcaster's user says what the line carries; a viewer has to find out.
      uplinkBytesPerS: options.uplinkBytesPerS === 0 ? 0 : options.limitBytesPerS ?? null,
    });
  }

  packet(bytes: number): number | null {
    const leavesMs = this.alive ? this.line.packet(bytes) : null;
    return leavesMs === null || this.loss.next() ? null : leavesMs;
  }

  /** What the handshake says. */
  get info(): LivePeerInfo {
    const { options: { liar, role } } = this;
    const host = this.name;
    const takesBundles = true;
    if (liar === undefined) return { role, upBytesPerS: this.node.toldUpBytesPerS, takesBundles, host };
    return { role: liar === "sinkhole" ? "source" : role, upBytesPerS: this.#liarBytesPerS, takesBundles, host };
  }

  /** An encoded PLACE as it is sent. */
  lied(place: Uint8Array): Uint8Array {
    const { liar } = this.options;
    if (liar === undefined) return place;
    const message = decodeLiveMessage(place) as PlaceMessage;
    if (liar === "clique") message.paths.set(this.#vouching(message.paths.length));
    return encodeLiveMessage(liedPlace(message, liar, this.#liarBytesPerS));
  }

  /** Paths through the other members of the clique that have places at the source. */
  #vouching(words: number): Uint32Array {
    const shown = new Uint32Array(words);
    for (let substream = 0; substream < words / PATH_WORDS; substream++) {
      let count = 0;
      for (const { node, alive } of this.#clique) {
        const source = [...node.peers].find(({ isSource }) => isSource);
        if (!alive || node === this.node || source?.place == null || !node.parents.feeds(source, substream)) {
          continue;
        }
        if (++count > SHOWN_TAGS) break;
        for (let at = substream * PATH_WORDS; at < (substream + 1) * PATH_WORDS; at++) {
          shown[at]! |= source.place.paths[at]!;
        }
      }
    }
    return shown;
  }

  /** Hangs up on a neighbour of no use; false when there is none. */
  makeRoom(): boolean {
    const peer = this.node.expendable();
    if (peer === null) return false;
    peer.link.close(null);
    return true;
  }
}

/** Something on its way from one end of a connection to the other. */
interface Parcel {
  readonly bytes: number;
  /** The block, and the messages that were sent right after it. */
  readonly arrivals: ((peer: LivePeer) => void)[];
}

/** One direction of a connection: what goes in comes out in the same order. */
class SimLink implements LiveLink, LineQueue {
  readonly #queue: EventWheel;
  readonly from: SimHost;
  readonly to: SimHost;
  readonly latencyMs: number;
  open = true;
  /** The sender's view of the far end, and the far end's of the sender. */
  local: LivePeer | null = null;
  remote: LivePeer | null = null;
  readonly #parcels: Parcel[] = [];
  /** Virtual ms at which what was sent last arrives. */
  #arrivesMs = 0;
  /** Virtual ms at which what was sent last will be acknowledged. */
  #clearMs = 0;
  /** What carries everything when each packet is followed; null when not. */
  readonly #tcp: TcpStream | null;
  readonly #log: MessageLog | null;

  constructor(queue: EventWheel, from: SimHost, to: SimHost, latencyMs: number) {
    this.#queue = queue;
    this.#log = logOf(queue);
    this.from = from;
    this.to = to;
    this.latencyMs = latencyMs;
    this.#tcp = from.options.packetLoss === undefined ? null : new TcpStream(queue, from, to, latencyMs);
  }

  send(message: Uint8Array): void {
    const parts = (decodeBundle(message) ?? [message]).map((part) => part[0] === PLACE ? this.from.lied(part) : part);
    const whole = parts.length === 1 ? parts[0]! : encodeBundle(parts);
    this.#note(whole);
    if (whole[0] === FILL) return this.#fill(whole.length + FRAME_BYTES);
    const partBytes = parts.length === 1 ? 0 : BUNDLED_BYTES;
    parts.forEach((part, i) => {
      const frameBytes = i > 0 ? 0 : whole === part ? FRAME_BYTES : FRAME_BYTES + 1;
      this.from.sent.add(MESSAGE_NAMES[part[0]!]!, part.length + partBytes + frameBytes, i > 0 ? 0 : 1);
    });
    this.#control(whole.length + FRAME_BYTES, (peer) => this.to.node.message(peer, whole));
  }

  request(seq: number, offset: number, length: number): void {
    this.#noteStandard(REQUEST, seq, offset, length);
    this.#standard("request", (peer) => this.to.node.requested(peer, seq, offset, length));
  }

  cancel(seq: number, offset: number): void {
    this.#noteStandard(CANCEL, seq, offset);
    this.#standard("cancel", (peer) => this.to.node.cancelled(peer, seq, offset));
  }

  reject(seq: number, offset: number): void {
    this.#noteStandard(REJECT, seq, offset);
    this.#standard("reject", (peer) => this.to.node.rejected(peer, seq, offset));
  }

  piece(seq: number, offset: number, data: Uint8Array): void {
    const { from } = this;
    this.#noteStandard(PIECE, seq, offset, data.length);
    if (data.length > POLICY.proofBytes && this.#isKept) return;
    const payload = from.options.poisons === true ? POISON.subarray(0, data.length) : data;
    const arrive = (peer: LivePeer) => this.to.node.block(peer, seq, offset, payload);
    if (this.#tcp !== null) return this.#tcp.write(data.length, () => this.#hand([arrive]));
    this.#parcels.push({ bytes: data.length, arrivals: [arrive] });
    from.line.waits(data.length);
    if (this.#parcels.length === 1) from.line.add(this);
  }

  #note(message: Uint8Array): void {
    this.#log?.add(this.#queue.nowMs, this.from.name, this.to.name, message);
  }

  #noteStandard(...fields: number[]): void {
    if (this.#log !== null) this.#note(new Uint8Array(new Uint32Array(fields).buffer));
  }

  close(error: MillraceError | null): void {
    if (error?.code === "protocol_violation") this.from.banned.add(this.to);
    disconnect(this.from, this.to);
  }

  /** True when this end keeps what it should send. */
  get #isKept(): boolean {
    const { liar } = this.from.options;
    return liar !== undefined && keepsBlocks(liar, this.#queue.nowMs);
  }

  get headBytes(): number | null {
    return this.open && this.from.alive ? this.#parcels[0]?.bytes ?? null : null;
  }

  headSent(): void {
    if (!this.open || !this.from.alive) return;
    const parcel = this.#parcels.shift()!;
    this.from.line.waits(-parcel.bytes);
    this.#deliver(parcel.bytes, parcel.arrivals);
  }

  /** Nothing waits here any more: the connection is gone. */
  emptied(): void {
    for (const { bytes } of this.#parcels) this.from.line.waits(-bytes);
    this.#parcels.length = 0;
    this.#tcp?.close();
  }

  /** What takes the line's time like payload, and means nothing. */
  #fill(bytes: number): void {
    this.from.sent.add("FILL", bytes);
    if (this.#tcp !== null) return this.#tcp.write(bytes, () => {});
    this.#parcels.push({ bytes, arrivals: [] });
    this.from.line.waits(bytes);
    if (this.#parcels.length === 1) this.from.line.add(this);
  }

  #standard(name: MessageName, arrive: (peer: LivePeer) => void): void {
    this.from.sent.add(name, STANDARD_BYTES);
    this.#control(STANDARD_BYTES, arrive);
  }

  /** What is not payload is small: it delays the line's blocks a little, and follows the blocks before it on its connection. */
  #control(bytes: number, arrive: (peer: LivePeer) => void): void {
    if (this.#tcp !== null) return this.#tcp.write(bytes, () => this.#hand([arrive]));
    const lineMs = this.from.line.charge(bytes);
    const last = this.#parcels.at(-1);
    if (last === undefined) this.#deliver(bytes, [arrive], lineMs);
    else last.arrivals.push(arrive);
  }

  #deliver(bytes: number, arrivals: readonly ((peer: LivePeer) => void)[], lineMs = 0): void {
    const queue = this.#queue;
    const leavesMs = this.#leavesMs(bytes);
    this.#arrivesMs = Math.max(this.#arrivesMs, leavesMs + lineMs + this.latencyMs + this.#lossMs(bytes));
    queue.at(this.#arrivesMs, () => this.#hand(arrivals));
  }

  #hand(arrivals: readonly ((peer: LivePeer) => void)[]): void {
    for (const arrive of arrivals) if (this.open && this.to.alive && this.remote !== null) arrive(this.remote);
  }

  /**
   * Virtual ms at which the last of `bytes` leaves the sockets: a connection that loses packets has no more of them under way
   * than TCP allows (Mathis and others, 1997).
   */
  #leavesMs(bytes: number): number {
    const { nowMs } = this.#queue;
    const { loss = 0 } = this.from.options;
    if (loss === 0) return nowMs;
    const rttMs = 2 * Math.max(LEAST_LATENCY_MS, this.latencyMs);
    const windowBytes = WINDOW_SHARE * PACKET_BYTES * Math.sqrt(3 / (2 * loss));
    this.#clearMs = Math.max(this.#clearMs, nowMs) + bytes / windowBytes * rttMs;
    return Math.max(nowMs, this.#clearMs - rttMs);
  }

  /**
   * What sending lost packets again costs, ms: a round trip, or more when nothing behind them shows the loss. A packet that our
   * own router dropped takes the line's time again, and the queue's.
   */
  #lossMs(bytes: number): number {
    const { options: { loss = 0 }, line, random } = this.from;
    const dropped = line.dropShare(2 * this.latencyMs, PACKET_BYTES);
    if (loss + dropped === 0) return 0;
    let ms = 0;
    for (let left = Math.ceil(bytes / PACKET_BYTES); left > 0; left--) {
      if (random() >= loss + dropped) continue;
      const isLast = left <= FAST_RETRANSMIT_PACKETS && this.#parcels.length === 0;
      ms = Math.max(ms, 2 * this.latencyMs + line.charge(PACKET_BYTES) + (isLast ? RETRANSMIT_MS : 0));
    }
    return ms;
  }
}

/** Has `a` connect to `b`; both ends hear of it when it is set up. */
export function connect(queue: EventWheel, a: SimHost, b: SimHost, latencyMs: number): boolean {
  return b.options.isClosed !== true && join(queue, a, b, latencyMs);
}

/** Connects two hosts that a third brought together; false when that can't be. */
export function punch(queue: EventWheel, a: SimHost, b: SimHost, latencyMs: number): boolean {
  return a.options.isPunchable === true && b.options.isPunchable === true && join(queue, a, b, latencyMs);
}

function join(queue: EventWheel, a: SimHost, b: SimHost, latencyMs: number): boolean {
  if (a === b || a.links.has(b) || a.banned.has(b) || b.banned.has(a) || !a.alive || !b.alive) return false;
  const there = new SimLink(queue, a, b, latencyMs);
  const back = new SimLink(queue, b, a, latencyMs);
  a.links.set(b, there);
  b.links.set(a, back);
  // One that opens a connection and gets no response asks again after a second, then after two.
  let againMs = 0;
  for (let waitMs = SYN_MS; a.loss.next() || b.loss.next(); waitMs *= 2) againMs += waitMs;
  queue.after(SET_UP_TRIPS * latencyMs + againMs, () => {
    if (!there.open) return;
    there.local = back.remote = a.node.connected(there, b.info);
    back.local = there.remote = b.node.connected(back, a.info);
    there.local.isSource = b.options.role === "source";
    back.local.isSource = a.options.role === "source";
    // Each end may speak before the other is told; nothing arrives in less than the latency.
  });
  return true;
}

/** Ends the connection of two hosts. */
export function disconnect(a: SimHost, b: SimHost): void {
  for (const [from, to] of [[a, b], [b, a]] as const) {
    const link = from.links.get(to);
    if (link === undefined) continue;
    from.links.delete(to);
    link.open = false;
    link.emptied();
    if (link.local !== null && !link.local.closed) from.node.disconnected(link.local);
  }
}
