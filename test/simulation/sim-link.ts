/** One direction of a connection of the simulated network. */
import type { MillraceError } from "../../src/errors.ts";
import { decodeBundle, encodeBundle } from "../../src/live/bundle.ts";
import type { LiveLink } from "../../src/live/node/neighbour/live-lane.ts";
import type { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import type { EventWheel } from "./event-wheel.ts";
import { keepsBlocks } from "./lies.ts";
import type { SimHost } from "./live-network.ts";
import { logOf, type MessageLog } from "./message-log.ts";
import { MESSAGE_NAMES, type MessageName } from "./sent-messages.ts";
import type { LineQueue } from "./sim-line.ts";
import { POISON } from "./simulated-pieces.ts";
import { TcpStream } from "./tcp-stream.ts";

/** First bytes of PLACE and FILL. */
const [PLACE, FILL] = [5, 13];
/** Length prefix, message id and extension id of a message of `live1` (BEP 3, BEP 10); length of a message in a BUNDLE. */
const [FRAME_BYTES, BUNDLED_BYTES] = [6, 2];
/** Ids of the standard messages (BEP 3, BEP 6), as the log holds them. */
const [REQUEST, PIECE, CANCEL, REJECT] = [6, 7, 8, 16];
/** A request, cancel or reject with its length prefix. */
const STANDARD_BYTES = 17;

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
/** Packets behind a lost one that have its sender send it again at once. */
const FAST_RETRANSMIT_PACKETS = 3;
/** Something on its way from one end of a connection to the other. */
interface Parcel {
  readonly bytes: number;
  /** The block, and the messages that were sent right after it. */
  readonly arrivals: ((peer: LivePeer) => void)[];
}

/** One direction of a connection: what goes in comes out in the same order. */
export class SimLink implements LiveLink, LineQueue {
  readonly #queue: EventWheel;
  readonly from: SimHost;
  readonly to: SimHost;
  readonly latencyMs: number;
  open = true;
  /** The sender's view of the far end, and the far end's of the sender. */
  local: LivePeer | null = null;
  remote: LivePeer | null = null;
  /** Further connections to the far end. */
  readonly spares: SimLink[] = [];
  readonly #parcels: Parcel[] = [];
  /** Virtual ms at which what was sent last arrives. */
  #arrivesMs = 0;
  /** Virtual ms at which what was sent last will be acknowledged. */
  #clearMs = 0;
  /** What carries everything when each packet is followed; null when not. */
  readonly #tcp: TcpStream | null;
  readonly #log: MessageLog | null;

  readonly #hangUp: () => void;

  /** `hangUp` ends the connection. */
  constructor(queue: EventWheel, from: SimHost, to: SimHost, latencyMs: number, hangUp: () => void) {
    this.#hangUp = hangUp;
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
    this.#hangUp();
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

  /** Another connection the same way. */
  another(): SimLink {
    return new SimLink(this.#queue, this.from, this.to, this.latencyMs, this.#hangUp);
  }

  /** The connection is gone, and the others with it. */
  end(): void {
    this.open = false;
    for (const spare of this.spares) spare.end();
    this.#empty();
  }

  /** Nothing waits here any more. */
  #empty(): void {
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
