/** A connection over UDP (uTP, BEP 29) that its users can't tell from one over TCP. */
import { guarded, guardedClock } from "../bytes/guarded-clock.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, SocketAddress, TcpConnection, TcpHandlers, Timer } from "../ports.ts";
import { AckPace } from "./ack-pace.ts";
import { ByteQueue } from "./byte-queue.ts";
import { Congestion, SEGMENT_BYTES } from "./congestion.ts";
import { encodePacket, PACKET, type UtpPacket } from "./packet.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { SendWindow, type SentPacket } from "./send-window.ts";

/** Marks of `write` and `drain`, bytes: as for TCP (`TcpConnection`). */
const WRITE_HIGH_BYTES = 256 * 1024;
const WRITE_LOW_BYTES = 64 * 1024;
/** Packets that may wait for their acknowledgement: fewer than the other end keeps after a gap. */
const MOST_PACKETS = 500;
/**
 * Writes at the beginning that leave in packets of their own: those of the handshakes, and the first after them.
 * transmission 3.00 doesn't look at what follows a handshake in its packet until another packet comes.
 */
const WRITES_APART = 8;
/** What is not acknowledged at once (`AckPace`) is after this, ms. */
const ACK_DELAY_MS = 10;
/** Data that pacing lets leave at once after a late timer, as time at its rate, ms. */
const BURST_MS = 4;
/** An end that has finished itself and does not reply is sent our FIN this many times. */
const FAREWELLS = 5;
/** With data under way, an end that sent nothing for this long is gone, ms. */
const SILENCE_MS = 20_000;

/** What a connection begins with: the handshake is done. */
export interface UtpStart {
  readonly local: SocketAddress;
  readonly remote: SocketAddress;
  /** Connection id of the packets that we send. */
  readonly sendId: number;
  /** Number of our next packet, and of the other end's last. */
  readonly nextSeq: number;
  readonly lastInOrder: number;
  /** Whether what we send gives way to other traffic of the path (LEDBAT). Default false. */
  readonly yields?: boolean;
  /** Received bytes that may wait for the reader. Default and most: 512 KiB. */
  readonly receiveLimitBytes?: number;
}

/** What a connection needs of the socket. */
export interface UtpWiring {
  readonly clock: Clock;
  /** Sends a datagram to the other end. */
  send(datagram: Uint8Array): void;
  /** The connection is over. */
  closed(): void;
}

/** An open connection. */
export class UtpConnection implements TcpConnection {
  readonly local: SocketAddress;
  readonly remote: SocketAddress;
  readonly #wiring: UtpWiring;
  readonly #sendId: number;
  readonly #sends: SendWindow;
  readonly #receives: ReceiveWindow;
  readonly #congestion: Congestion;
  readonly #queue = new ByteQueue(WRITES_APART);
  #handlers: TcpHandlers | null = null;
  #theirWindowBytes = SEGMENT_BYTES * 10;
  #delayUs = 0;
  #lastHeardMs: number;
  #nextSendMs = 0;
  readonly #ackPace = new AckPace();
  #timeouts = 0;
  #ackTimer: Timer | null = null;
  #paceTimer: Timer | null = null;
  #lossTimer: Timer | null = null;
  #isPaused = false;
  #isPumpDue = false;
  #needsDrain = false;
  #ending = false;
  #finSent = false;
  #endReported = false;
  #isClosed = false;
  /** An exception costs this connection, and nobody else notices. */
  readonly #failed = (cause: unknown) =>
    this.#finish(new MillraceError("internal", "a fault of the engine ended the connection", { cause }));
  #closeError: Error | undefined;

  constructor(start: UtpStart, wiring: UtpWiring) {
    this.local = start.local;
    this.remote = start.remote;
    this.#sendId = start.sendId;
    this.#sends = new SendWindow(start.nextSeq);
    this.#congestion = new Congestion(start.yields);
    this.#receives = new ReceiveWindow(start.lastInOrder, start.receiveLimitBytes);
    this.#wiring = { ...wiring, clock: guardedClock(wiring.clock, this.#failed) };
    this.#lastHeardMs = wiring.clock.monotonic();
  }

  open(handlers: TcpHandlers): void {
    this.#handlers = handlers;
    this.#soon(() => this.#isClosed ? this.#report() : this.#deliver());
  }

  get bufferedBytes(): number {
    return this.#queue.bytes;
  }

  write(chunk: Uint8Array): boolean {
    if (this.#ending || this.#isClosed) return false;
    this.#queue.push(chunk);
    this.#pumpSoon();
    if (this.#queue.bytes <= WRITE_HIGH_BYTES) return true;
    this.#needsDrain = true;
    return false;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#soon(() => {
      const roomBytes = this.#receives.roomBytes;
      this.#deliver();
      // The other end may have stopped because we had no room.
      if (!this.#isClosed && this.#receives.roomBytes > roomBytes) this.acknowledge();
    });
  }

  end(): void {
    if (this.#ending || this.#isClosed) return;
    this.#ending = true;
    this.#pumpSoon();
  }

  abort(): void {
    if (this.#isClosed) return;
    this.#send(PACKET.reset, this.#sends.next, new Uint8Array(0));
    this.#isClosed = true;
    this.#release();
    this.#soon(() => this.#report());
  }

  /** A packet of this connection arrived. Never throws. */
  receive(packet: UtpPacket): void {
    guarded(() => this.#receive(packet), this.#failed)();
  }

  #soon(fn: () => void): void {
    queueMicrotask(guarded(fn, this.#failed));
  }

  #receive(packet: UtpPacket): void {
    if (this.#isClosed) return;
    const { clock } = this.#wiring;
    const nowMs = clock.monotonic();
    this.#delayUs = (Math.floor(nowMs * 1000) - packet.timestampUs) >>> 0;
    if (packet.type === PACKET.reset) {
      return this.#finish(new MillraceError("connection_failed", "the peer reset the connection"));
    }
    const wasFull = this.#queue.bytes > 0 || this.#sends.hasLost ||
      2 * this.#sends.bytesUnderWay >= this.#congestion.windowBytes;
    const arrivals = this.#sends.acknowledge(packet.ack, packet.selectiveAck);
    // An acknowledgement of packets that were never sent is not from the other end.
    if (arrivals === null && packet.type === PACKET.state) return;
    this.#lastHeardMs = nowMs;
    this.#theirWindowBytes = packet.windowBytes;
    if (arrivals !== null && arrivals.count > 0) {
      if (arrivals.sentMs !== null) this.#congestion.measured(nowMs - arrivals.sentMs);
      // An end that has measured nothing says 0.
      if (packet.timestampDifferenceUs !== 0) this.#congestion.delayed(packet.timestampDifferenceUs, nowMs);
      this.#congestion.arrived(arrivals.bytes, wasFull);
      this.#timeouts = 0;
      this.#armLossTimer(true);
    }
    if (arrivals?.isLoss === true) {
      this.#sends.reacted();
      this.#congestion.lost();
    }
    if (packet.type === PACKET.data || packet.type === PACKET.fin) this.#take(packet);
    else if (packet.type === PACKET.syn) this.acknowledge();
    if (this.#isClosed) return;
    this.#pump();
    this.#finishIfOver();
  }

  /** Sends an acknowledgement of all that arrived. */
  acknowledge(): void {
    this.#send(PACKET.state, this.#sends.next, new Uint8Array(0));
  }

  #take({ seq, type, payload }: UtpPacket): void {
    const kind = this.#receives.take(seq, type, payload);
    const isDisturbed = kind !== "order" || this.#receives.hasGap;
    if (isDisturbed) this.#ackPace.disturbed();
    if (isDisturbed || type === PACKET.fin || this.#ackPace.arrived(this.#lastHeardMs)) this.acknowledge();
    else this.#ackTimer ??= this.#wiring.clock.setTimeout(() => this.acknowledge(), ACK_DELAY_MS);
    if (kind === "order") this.#deliver();
  }

  #deliver(): void {
    while (!this.#isPaused && !this.#isClosed && this.#handlers !== null) {
      const chunk = this.#receives.shift();
      if (chunk === undefined) break;
      this.#handlers.data(chunk);
    }
    if (this.#isPaused || this.#isClosed || this.#handlers === null) return;
    if (!this.#receives.isFinished || this.#endReported) return;
    this.#endReported = true;
    this.#handlers.end();
    this.#finishIfOver();
  }

  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    this.#soon(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  /** Sends everything that may leave now, lost packets first. */
  #pump(): void {
    if (this.#isClosed) return;
    const { clock } = this.#wiring;
    const nowMs = clock.monotonic();
    for (;;) {
      const isAgain = this.#sends.hasLost;
      if (!isAgain && (this.#queue.bytes === 0 || this.#sends.length >= MOST_PACKETS)) break;
      const limit = Math.min(this.#congestion.windowBytes, isAgain ? Infinity : this.#theirWindowBytes);
      const { bytesUnderWay } = this.#sends;
      // One packet may always be under way: it finds out whether the other end has room again.
      if (bytesUnderWay > 0 && bytesUnderWay + SEGMENT_BYTES > limit) break;
      if (nowMs < this.#nextSendMs) {
        this.#paceTimer ??= clock.setTimeout(() => {
          this.#paceTimer = null;
          this.#pump();
        }, this.#nextSendMs - nowMs);
        break;
      }
      const packet = isAgain
        ? this.#sends.again(nowMs)!
        : this.#sends.add(PACKET.data, this.#queue.take(SEGMENT_BYTES), nowMs);
      this.#transmit(packet);
      this.#nextSendMs = Math.max(this.#nextSendMs, nowMs - BURST_MS) +
        packet.payload.length / this.#congestion.bytesPerMs;
    }
    if (this.#ending && !this.#finSent && this.#queue.bytes === 0) {
      this.#finSent = true;
      this.#transmit(this.#sends.add(PACKET.fin, new Uint8Array(0), nowMs));
    }
    if (this.#needsDrain && this.#queue.bytes < WRITE_LOW_BYTES && !this.#ending) {
      this.#needsDrain = false;
      this.#handlers?.drain();
    }
  }

  #transmit({ type, seq, payload }: SentPacket): void {
    this.#send(type, seq, payload);
    this.#armLossTimer(false);
  }

  #send(type: number, seq: number, payload: Uint8Array): void {
    this.#ackPace.sent();
    this.#ackTimer?.cancel();
    this.#ackTimer = null;
    this.#wiring.send(encodePacket({
      type,
      connectionId: this.#sendId,
      timestampUs: Math.floor(this.#wiring.clock.monotonic() * 1000),
      timestampDifferenceUs: this.#delayUs,
      windowBytes: this.#receives.roomBytes,
      seq,
      ack: this.#receives.ack,
      selectiveAck: this.#receives.selectiveAck(),
      payload,
    }));
  }

  #armLossTimer(isNew: boolean): void {
    if (isNew) {
      this.#lossTimer?.cancel();
      this.#lossTimer = null;
    }
    if (this.#sends.length === 0) return;
    this.#lossTimer ??= this.#wiring.clock.setTimeout(() => this.#timedOut(), this.#congestion.timeoutMs);
  }

  #timedOut(): void {
    this.#lossTimer = null;
    if (this.#isClosed || this.#sends.length === 0) return;
    // The other end may be done, and only its last acknowledgement was lost.
    if (this.#finSent && this.#receives.isFinished && this.#timeouts++ >= FAREWELLS) return this.#finish();
    if (this.#wiring.clock.monotonic() - this.#lastHeardMs > SILENCE_MS) {
      return this.#finish(new MillraceError("connection_failed", "the peer sends nothing any more"));
    }
    this.#sends.timedOut();
    this.#congestion.timedOut();
    this.#nextSendMs = 0;
    this.#pump();
    this.#armLossTimer(false);
  }

  #finishIfOver(): void {
    if (this.#finSent && this.#endReported && this.#sends.length === 0) this.#finish();
  }

  #finish(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeError = error;
    this.#release();
    this.#report();
  }

  #release(): void {
    this.#queue.clear();
    for (const timer of [this.#ackTimer, this.#paceTimer, this.#lossTimer]) timer?.cancel();
    this.#wiring.closed();
  }

  #report(): void {
    const handlers = this.#handlers;
    this.#handlers = null;
    handlers?.close(this.#closeError);
  }
}
