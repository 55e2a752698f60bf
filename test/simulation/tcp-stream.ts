/**
 * One direction of a TCP connection on virtual time, packet by packet. What is written comes out in order, a lost packet holds
 * back all that is behind it, and the window follows what is lost. It does what Linux does with Reno: selective
 * acknowledgements, losses found by time and by probes of the tail (RFC 8985), timeouts that double (RFC 6298), a window that
 * halves (RFC 5681) and shrinks while nothing is sent (RFC 2861).
 */
import type { EventWheel } from "./event-wheel.ts";

/** Sends packets over a line. */
export interface PacketSender {
  /** A packet of `bytes` leaves; returns the time until it has left the line, ms. null: it is lost. */
  packet(bytes: number): number | null;
}

/** Payload of a packet, and what IP and TCP add. */
const PACKET_BYTES = 1448;
const OVERHEAD_BYTES = 52;
/** Acknowledgements come for every second packet, so that each packet costs half of one. */
const ACK_BYTES = OVERHEAD_BYTES / 2;
/** Packets under way at first (RFC 6928), and at least after a loss. */
const FIRST_PACKETS = 10;
const LEAST_PACKETS = 2;
/** Least time from sending until a timeout beyond the round trip, and the most that it doubles to, ms. */
const LEAST_TIMEOUT_MS = 200;
const MOST_TIMEOUT_MS = 60_000;
/** Round trip that is assumed before the first one, ms. */
const UNKNOWN_TRIP_MS = 800;
/** Packets that arrived after being sent later show that a packet is lost; fewer do when this share of a round trip passes, too. */
const LATER_PACKETS = 3;
const REORDER_SHARE = 0.25;

/** Bytes that travel together, as often as it takes. */
interface Segment {
  readonly fromByte: number;
  readonly toByte: number;
  state: "out" | "lost" | "done";
  sentMs: number;
  /** Number of its last copy among all that were sent. */
  order: number;
  sends: number;
  /** The last copy did not get through: the sender does not know that. */
  isDropped: boolean;
}

/** One direction of a connection. */
export class TcpStream {
  readonly #queue: EventWheel;
  readonly #from: PacketSender;
  readonly #to: PacketSender;
  readonly #oneWayMs: number;
  #isClosed = false;
  // The sender's end.
  #writtenBytes = 0;
  #sentBytes = 0;
  /** What is not acknowledged, in order. */
  #segments: Segment[] = [];
  #outCount = 0;
  #window = FIRST_PACKETS;
  #threshold = Infinity;
  /** What was sent up to here before the window was halved: its losses are part of the same event. */
  #recoverByte = 0;
  #isLimited = false;
  #tripMs = 0;
  #tripVaryMs = 0;
  #leastTripMs = Infinity;
  /** Copies sent so far, and the newest of which the sender knows that it arrived. */
  #order = 0;
  #deliveredOrder = -1;
  #sentMs = -Infinity;
  #timeouts = 0;
  #timer = 0;
  #isProbed = false;
  // The receiver's end.
  #arrivals: Segment[] = [];
  #seen = 0;
  #inOrderBytes = 0;
  readonly #early = new Map<number, number>();
  readonly #writes: { readonly toByte: number; readonly arrive: () => void }[] = [];

  /** Data goes from `from` to `to`, acknowledgements back. */
  constructor(queue: EventWheel, from: PacketSender, to: PacketSender, oneWayMs: number) {
    this.#queue = queue;
    this.#from = from;
    this.#to = to;
    this.#oneWayMs = oneWayMs;
  }

  /** Sends `bytes`; `arrive` is called at the other end once all up to here have come. */
  write(bytes: number, arrive: () => void): void {
    if (this.#isClosed) return;
    if (this.#segments.length === 0) this.#rest();
    this.#writtenBytes += bytes;
    this.#writes.push({ toByte: this.#writtenBytes, arrive });
    this.#send();
  }

  /** Nothing is sent or arrives any more. */
  close(): void {
    this.#isClosed = true;
    this.#timer++;
  }

  /** The window halves for each timeout without anything sent. */
  #rest(): void {
    for (let ms = this.#queue.nowMs - this.#sentMs - this.#timeoutMs; ms > 0 && this.#window > FIRST_PACKETS;) {
      this.#window = Math.max(FIRST_PACKETS, this.#window / 2);
      ms -= this.#timeoutMs;
    }
  }

  get #timeoutMs(): number {
    if (this.#tripMs === 0) return UNKNOWN_TRIP_MS + LEAST_TIMEOUT_MS;
    return this.#tripMs + Math.max(LEAST_TIMEOUT_MS, 4 * this.#tripVaryMs);
  }

  #send(): void {
    let isNew = false;
    while (this.#outCount < Math.floor(this.#window)) {
      const lost = this.#segments.find(({ state }) => state === "lost");
      if (lost !== undefined) this.#transmit(lost);
      else if (!this.#sendNew()) break;
      isNew = true;
    }
    this.#isLimited = this.#outCount >= Math.floor(this.#window);
    if (isNew) this.#arm();
  }

  #sendNew(): boolean {
    const bytes = Math.min(PACKET_BYTES, this.#writtenBytes - this.#sentBytes);
    if (bytes === 0) return false;
    const fromByte = this.#sentBytes;
    const toByte = this.#sentBytes = fromByte + bytes;
    const segment: Segment = { fromByte, toByte, state: "lost", sentMs: 0, order: 0, sends: 0, isDropped: false };
    this.#segments.push(segment);
    this.#transmit(segment);
    return true;
  }

  #transmit(segment: Segment): void {
    if (segment.state === "lost") this.#outCount++;
    segment.state = "out";
    segment.sentMs = this.#sentMs = this.#queue.nowMs;
    segment.order = this.#order++;
    segment.sends++;
    const lineMs = this.#from.packet(segment.toByte - segment.fromByte + OVERHEAD_BYTES);
    segment.isDropped = lineMs === null;
    if (lineMs !== null) this.#queue.after(lineMs + this.#oneWayMs, () => this.#arrive(segment));
  }

  /** A packet has arrived. */
  #arrive(segment: Segment): void {
    if (this.#isClosed) return;
    this.#arrivals.push(segment);
    if (segment.fromByte >= this.#inOrderBytes) this.#early.set(segment.fromByte, segment.toByte);
    for (let next = this.#early.get(this.#inOrderBytes); next !== undefined; next = this.#early.get(next)) {
      this.#early.delete(this.#inOrderBytes);
      this.#inOrderBytes = next;
    }
    const lineMs = this.#to.packet(ACK_BYTES);
    const count = this.#seen + this.#arrivals.length;
    if (lineMs !== null) this.#queue.after(lineMs + this.#oneWayMs, () => this.#acknowledged(count));
    while (!this.#isClosed && this.#writes.length > 0 && this.#writes[0]!.toByte <= this.#inOrderBytes) {
      this.#writes.shift()!.arrive();
    }
  }

  /** The sender hears of the first `count` arrivals. */
  #acknowledged(count: number): void {
    if (this.#isClosed || count <= this.#seen) return;
    const wasOut = this.#outCount;
    let packets = 0;
    for (const segment of this.#arrivals.splice(0, count - this.#seen)) {
      if (segment.state === "done") continue;
      if (segment.state === "out") this.#outCount--;
      segment.state = "done";
      packets++;
      if (segment.sends === 1) this.#noteTrip(this.#queue.nowMs - segment.sentMs);
      // An earlier copy may have arrived.
      if (this.#queue.nowMs - segment.sentMs < this.#leastTripMs) continue;
      this.#deliveredOrder = Math.max(this.#deliveredOrder, segment.order);
    }
    this.#seen = count;
    if (packets === 0) return;
    this.#timeouts = 0;
    this.#isProbed = false;
    this.#segments = this.#segments.filter(({ state }) => state !== "done");
    this.#grow(packets, wasOut);
    this.#findLost();
    this.#send();
    this.#arm();
  }

  #noteTrip(ms: number): void {
    this.#leastTripMs = Math.min(this.#leastTripMs, ms);
    if (this.#tripMs === 0) [this.#tripMs, this.#tripVaryMs] = [ms, ms / 2];
    this.#tripVaryMs += (Math.abs(ms - this.#tripMs) - this.#tripVaryMs) / 4;
    this.#tripMs += (ms - this.#tripMs) / 8;
  }

  #grow(packets: number, wasOut: number): void {
    const isSlowStart = this.#window < this.#threshold;
    const isRecovering = (this.#segments[0]?.fromByte ?? this.#sentBytes) < this.#recoverByte;
    if (isRecovering && !isSlowStart) return;
    if (!this.#isLimited && !(isSlowStart && this.#window < 2 * wasOut)) return;
    this.#window += isSlowStart ? packets : packets / this.#window;
  }

  /** What was sent before something that has arrived is lost, unless it may only have been overtaken. */
  #findLost(): void {
    const { nowMs } = this.#queue;
    const patienceMs = this.#tripMs + this.#leastTripMs * REORDER_SHARE;
    let againMs = Infinity;
    const out = this.#segments.filter(({ state, order }) => state === "out" && order < this.#deliveredOrder);
    for (const segment of out) {
      const isOvertaken = this.#early.size >= LATER_PACKETS && segment.sends === 1;
      const leftMs = segment.sentMs + patienceMs - nowMs;
      if (!isOvertaken && leftMs > 0) againMs = Math.min(againMs, leftMs);
      else this.#lose(segment);
    }
    if (againMs === Infinity) return;
    this.#queue.after(againMs, () => {
      if (this.#isClosed) return;
      this.#findLost();
      this.#send();
    });
  }

  #lose(segment: Segment): void {
    segment.state = "lost";
    this.#outCount--;
    if (segment.fromByte >= this.#recoverByte) this.#halve();
  }

  #halve(): void {
    this.#window = this.#threshold = Math.max(LEAST_PACKETS, this.#window / 2);
    this.#recoverByte = this.#sentBytes;
  }

  /** Waits for acknowledgements: first to probe the tail, then for a timeout. */
  #arm(): void {
    const timer = ++this.#timer;
    if (this.#segments.length === 0) return;
    const timeoutMs = Math.min(MOST_TIMEOUT_MS, this.#timeoutMs * 2 ** this.#timeouts);
    const mayProbe = !this.#isProbed && this.#timeouts === 0 && this.#tripMs > 0;
    const probeMs = 2 * this.#tripMs + (this.#outCount === 1 ? LEAST_TIMEOUT_MS : 0);
    const isProbe = mayProbe && probeMs < timeoutMs;
    this.#queue.after(isProbe ? probeMs : timeoutMs, () => {
      if (timer !== this.#timer) return;
      if (isProbe) this.#probe();
      else this.#timedOut();
    });
  }

  #probe(): void {
    this.#isProbed = true;
    const last = this.#segments.findLast(({ state }) => state === "out");
    if (!this.#sendNew() && last !== undefined) {
      if (last.isDropped && last.fromByte >= this.#recoverByte) this.#halve();
      this.#transmit(last);
    }
    this.#arm();
  }

  #timedOut(): void {
    if (this.#timeouts++ === 0) this.#threshold = Math.max(LEAST_PACKETS, this.#window / 2);
    this.#window = 1;
    this.#recoverByte = this.#sentBytes;
    for (const segment of this.#segments) {
      if (segment.state === "out") this.#outCount--;
      if (segment.state !== "done") segment.state = "lost";
    }
    this.#send();
    this.#arm();
  }
}

/** How many packets are lost. */
export interface PacketLossOptions {
  /** Of all packets, in [0, 1). */
  readonly share: number;
  /** How many in a row, on average. Default: each is lost by itself. */
  readonly burstPackets?: number;
}

/** Which packets are lost: each by itself, or in bursts of that many on average (Gilbert 1960, Elliott 1963). */
export class PacketLoss {
  /** Chances that the next packet is lost: after one that was not, and after one that was. */
  readonly #begins: number;
  readonly #goesOn: number;
  readonly #random: () => number;
  #isBad = false;

  constructor({ share, burstPackets = 1 }: PacketLossOptions, random: () => number) {
    // As many are lost in a row when each is lost by itself.
    const mean = Math.max(burstPackets, 1 / (1 - share));
    this.#begins = share / (1 - share) / mean;
    this.#goesOn = 1 - 1 / mean;
    this.#random = random;
  }

  /** Whether the next packet is lost. */
  next(): boolean {
    if (this.#begins === 0) return false;
    return this.#isBad = this.#random() < (this.#isBad ? this.#goesOn : this.#begins);
  }
}
