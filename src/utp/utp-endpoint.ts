/**
 * One UDP socket for uTP connections: those that we open, those that others open while we `listen`, and those that a common
 * neighbour arranged. While we don't listen, a SYN is refused, so that the other end tries TCP at once instead of waiting
 * for a reply. All other datagrams of strangers are dropped. Connections of a live swarm's arrangements send like TCP; the
 * others give way to other traffic.
 */
import { guarded } from "../bytes/guarded-clock.ts";
import { toHex } from "../bytes/hex.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { Clock, SocketAddress, Timer, UdpSocket } from "../ports.ts";
import { decodePacket, encodePacket, PACKET, type UtpPacket } from "./packet.ts";
import { type AnsweredSyn, Strangers } from "./strangers.ts";
import { UtpConnection, type UtpStart } from "./utp-connection.ts";

/** Bytes of a token. */
export const TOKEN_BYTES = 8;
/** A token datagram is these bytes and the token: neither uTP nor bencoding begins like that. */
const TOKEN_MARK = new TextEncoder().encode("live");

/**
 * When datagrams of an arrangement leave, ms after its beginning. Both ends begin within a round trip, and one or two
 * may be lost.
 */
const PUNCH_AT_MS = [0, 100, 250, 500, 800, 1_200, 1_700, 2_300];
/** When the SYNs of a dial leave, ms after its beginning, and how long it waits: one may be lost, a reply takes 0.8 s. */
const SYN_AT_MS = [0, 700, 1_500];
const DIAL_TIMEOUT_MS = 2_500;
/** Bounds: connections, dials and arrangements under way, tokens expected. */
const MAX_CONNECTIONS = 256;
const MAX_DIALS = 64;
const MAX_PUNCHES = 16;
const MAX_TOKENS = 64;
/** What a socket that doesn't say so keeps of unread datagrams, bytes: Linux's default. */
const USUAL_BUFFER_BYTES = 212_992;
/** A packet takes twice its payload in the kernel, and others arrive as well: a connection may fill this part of the buffer. */
const WINDOW_SHARE = 1 / 4;
const MOST_WINDOW_BYTES = 512 * 1024;

/** What an endpoint needs. */
export interface UtpEndpointOptions {
  readonly clock: Clock;
  /** At least 0, below 1. */
  readonly random: () => number;
  /** Opens the socket; called once, when it is needed first. */
  readonly open: () => Promise<UdpSocket>;
}

/** An arrangement that a common neighbour made with both ends. */
export interface Punch {
  /** 8 bytes that both ends and that neighbour know. */
  readonly token: Uint8Array;
  /** True: sends SYN; false: waits for it. */
  readonly isInitiator: boolean;
  /** Where the neighbour saw the other end. */
  readonly address: SocketAddress;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

/** A connection that we open. */
interface Dial {
  readonly id: number;
  readonly seq: number;
  readonly connected: (connection: UtpConnection) => void;
  readonly refused: (error: MillraceError) => void;
}

interface Attempt {
  readonly punch: Punch;
  readonly id: number;
  readonly seq: number;
  /** Where datagrams go; corrected when the other end's NAT uses another port for us. */
  target: SocketAddress;
  readonly connected: (connection: UtpConnection) => void;
}

/** The uTP side of an engine's UDP port. */
export class UtpEndpoint {
  readonly #options: UtpEndpointOptions;
  #socket: UdpSocket | null = null;
  #opening: Promise<UdpSocket> | null = null;
  readonly #connections = new Map<string, UtpConnection>();
  readonly #attempts = new Map<string, Attempt>();
  readonly #dials = new Map<string, Dial>();
  readonly #tokens = new Map<string, (from: SocketAddress) => void>();
  readonly #strangers: Strangers;
  #incoming: ((connection: UtpConnection) => void) | null = null;
  #closed = false;

  constructor(options: UtpEndpointOptions) {
    this.#options = options;
    const { clock, random } = options;
    this.#strangers = new Strangers({ clock, random, windowBytes: () => this.#windowBytes });
  }

  /** Accepts connections from now on; each must be `open`ed in the turn in which `incoming` is called. */
  listen(incoming: (connection: UtpConnection) => void): void {
    this.#incoming = incoming;
  }

  /** Connects. Rejects with `timeout`, `connection_failed`, `too_busy`, `unavailable` or the signal's reason. */
  async connect(address: SocketAddress, { signal }: { signal: AbortSignal }): Promise<UtpConnection> {
    const socket = await this.#bound();
    const { clock, random } = this.#options;
    if (signal.aborted) throw abortError(signal);
    const id = Math.floor(random() * 0x10000);
    const key = connectionKey(address, id);
    if (this.#dials.size >= MAX_DIALS || this.#connections.size >= MAX_CONNECTIONS) throw tooMany();
    if (this.#dials.has(key) || this.#connections.has(key)) throw tooMany();
    const seq = Math.floor(random() * 0x10000);
    const timers: Timer[] = [];
    let stop = () => {};
    try {
      return await new Promise<UtpConnection>((resolve, reject) => {
        const abort = () => {
          // Somebody who has taken the SYN shall not wait for us.
          const nextSeq = (seq + 1) & 0xffff;
          void socket.send(this.#bare(PACKET.reset, (id + 1) & 0xffff, nextSeq), address);
          reject(abortError(signal));
        };
        signal.addEventListener("abort", abort, { once: true });
        stop = () => signal.removeEventListener("abort", abort);
        this.#dials.set(key, { id, seq, connected: resolve, refused: reject });
        const knock = guarded(() => void socket.send(this.#bare(PACKET.syn, id, seq), address), reject);
        for (const delayMs of SYN_AT_MS) timers.push(clock.setTimeout(knock, delayMs));
        const late = () => reject(new MillraceError("timeout", "the peer does not answer over UDP"));
        timers.push(clock.setTimeout(late, DIAL_TIMEOUT_MS));
      });
    } finally {
      stop();
      for (const timer of timers) timer.cancel();
      this.#dials.delete(key);
    }
  }

  /** Opens the socket if need be; returns its port. Rejects with `closed`, or when there is no UDP. */
  async bind(): Promise<number> {
    return (await this.#bound()).address.port;
  }

  /** Calls `seen` for each datagram that carries the token, until the returned function is called. False: too many are expected. */
  expect(token: Uint8Array, seen: (from: SocketAddress) => void): (() => void) | null {
    if (this.#tokens.size >= MAX_TOKENS) return null;
    const key = toHex(token);
    this.#tokens.set(key, seen);
    return () => void this.#tokens.delete(key);
  }

  /** Sends a token. */
  async show(token: Uint8Array, to: SocketAddress): Promise<void> {
    await (await this.#bound()).send(tokenDatagram(token), to);
  }

  /**
   * Connects to an end that tries the same at the same time. Rejects with `timeout`, `too_busy`, `conflict` or the
   * signal's reason.
   */
  async punch(punch: Punch): Promise<UtpConnection> {
    const socket = await this.#bound();
    const { clock, random } = this.#options;
    const id = punch.token[0]! << 8 | punch.token[1]!;
    const key = attemptKey(punch.address.host, id);
    if (this.#attempts.size >= MAX_PUNCHES || this.#connections.size >= MAX_CONNECTIONS) {
      throw tooMany();
    }
    if (this.#attempts.has(key)) throw new MillraceError("conflict", "this peer is being connected to already");
    if (punch.signal.aborted) throw abortError(punch.signal);
    const timers: Timer[] = [];
    let stop = () => {};
    try {
      return await new Promise<UtpConnection>((resolve, reject) => {
        const abort = () => reject(abortError(punch.signal));
        punch.signal.addEventListener("abort", abort, { once: true });
        stop = () => punch.signal.removeEventListener("abort", abort);
        const seq = Math.floor(random() * 0x10000);
        const attempt: Attempt = { punch, id, seq, target: punch.address, connected: resolve };
        this.#attempts.set(key, attempt);
        const knock = guarded(() => this.#knock(socket, attempt), reject);
        for (const delayMs of PUNCH_AT_MS) timers.push(clock.setTimeout(knock, delayMs));
        const lastMs = 2 * PUNCH_AT_MS.at(-1)! - PUNCH_AT_MS.at(-2)!;
        timers.push(clock.setTimeout(() => reject(new MillraceError("timeout", "no datagram got through")), lastMs));
      });
    } finally {
      stop();
      for (const timer of timers) timer.cancel();
      this.#attempts.delete(key);
    }
  }

  /** Drops all connections and closes the socket. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const connection of [...this.#connections.values()]) connection.abort();
    this.#socket?.close();
  }

  async #bound(): Promise<UdpSocket> {
    if (this.#closed) throw new MillraceError("closed", "the UDP port is closed");
    this.#opening ??= this.#options.open().then((socket) => {
      if (this.#closed) {
        socket.close();
        throw new MillraceError("closed", "the UDP port is closed");
      }
      socket.onMessage((data, from) => this.#receive(socket, data, from));
      return this.#socket = socket;
    });
    return await this.#opening;
  }

  #knock(socket: UdpSocket, { punch, id, seq, target }: Attempt): void {
    void socket.send(punch.isInitiator ? this.#bare(PACKET.syn, id, seq) : tokenDatagram(punch.token), target);
  }

  /** A packet to an end of which nothing is known. */
  #bare(type: number, connectionId: number, seq: number): Uint8Array {
    return encodePacket({
      type,
      connectionId,
      timestampUs: Math.floor(this.#options.clock.monotonic() * 1000),
      timestampDifferenceUs: 0,
      windowBytes: this.#windowBytes,
      seq,
      ack: 0,
      selectiveAck: null,
      payload: new Uint8Array(0),
    });
  }

  /** What one connection may receive before its reader takes it, bytes. */
  get #windowBytes(): number {
    const bufferBytes = this.#socket?.receiveBufferBytes ?? USUAL_BUFFER_BYTES;
    return Math.min(MOST_WINDOW_BYTES, Math.floor(bufferBytes * WINDOW_SHARE));
  }

  #receive(socket: UdpSocket, data: Uint8Array, from: SocketAddress): void {
    if (this.#closed || from.port === 0) return;
    const token = tokenOf(data);
    if (token !== null) return this.#tokenFrom(socket, token, from);
    const packet = decodePacket(data);
    if (packet === null) return;
    const isSyn = packet.type === PACKET.syn;
    const ownId = isSyn ? (packet.connectionId + 1) & 0xffff : packet.connectionId;
    const connection = this.#connections.get(connectionKey(from, ownId));
    if (connection !== undefined) return connection.receive(packet);
    const attempt = this.#attempts.get(attemptKey(from.host, packet.connectionId));
    if (attempt !== undefined) return this.#answered(socket, attempt, packet, from);
    if (isSyn) return this.#knocked(socket, packet, from);
    const dial = this.#dials.get(connectionKey(from, ownId));
    if (dial !== undefined) this.#replied(socket, dial, packet, from);
    else this.#proved(socket, packet, from);
  }

  /** A SYN of a stranger. */
  #knocked(socket: UdpSocket, packet: UtpPacket, from: SocketAddress): void {
    const takes = this.#incoming !== null && this.#connections.size < MAX_CONNECTIONS;
    const key = connectionKey(from, (packet.connectionId + 1) & 0xffff);
    const reply = takes ? this.#strangers.answer(key, packet, from) : this.#strangers.refuse(packet, from);
    if (reply !== null) void socket.send(reply, from);
  }

  /** A packet of an end that perhaps has seen our reply to its SYN. */
  #proved(socket: UdpSocket, packet: UtpPacket, from: SocketAddress): void {
    const start = this.#strangers.prove(connectionKey(from, packet.connectionId), packet);
    if (start === null || this.#incoming === null || this.#connections.size >= MAX_CONNECTIONS) return;
    // An arranged SYN may have come before we learned of the arrangement.
    const attempt = this.#attempts.get(attemptKey(from.host, start.sendId));
    const isArranged = attempt?.punch.isInitiator === false;
    const connection = this.#add(socket, from, packet.connectionId, { ...start, yields: !isArranged });
    if (isArranged) attempt!.connected(connection);
    else this.#incoming(connection);
    connection.receive(packet);
  }

  /** The end that we dial sent a packet. */
  #replied(socket: UdpSocket, { id, seq, connected, refused }: Dial, packet: UtpPacket, from: SocketAddress): void {
    if (packet.ack !== seq) return;
    if (packet.type === PACKET.reset) {
      return refused(new MillraceError("connection_failed", "the peer takes no connection over UDP"));
    }
    if (packet.type === PACKET.state) {
      connected(this.#add(socket, from, id, { ...startOf(id, seq, packet), yields: true }));
    }
  }

  #tokenFrom(socket: UdpSocket, token: Uint8Array, from: SocketAddress): void {
    const key = toHex(token);
    this.#tokens.get(key)?.(from);
    const attempt = this.#attempts.get(attemptKey(from.host, token[0]! << 8 | token[1]!));
    if (attempt === undefined || !attempt.punch.isInitiator || toHex(attempt.punch.token) !== key) return;
    if (from.port === attempt.target.port) return;
    attempt.target = from;
    this.#knock(socket, attempt);
  }

  #answered(socket: UdpSocket, attempt: Attempt, packet: UtpPacket, from: SocketAddress): void {
    const { punch, id, seq } = attempt;
    if (punch.isInitiator) {
      if (packet.type !== PACKET.state || packet.ack !== seq) return;
      return attempt.connected(this.#add(socket, from, id, startOf(id, seq, packet)));
    }
    if (packet.type !== PACKET.syn) return;
    const connection = this.#add(socket, from, (id + 1) & 0xffff, {
      sendId: id,
      nextSeq: seq,
      lastInOrder: packet.seq,
    });
    connection.acknowledge();
    attempt.connected(connection);
  }

  #add(
    socket: UdpSocket,
    remote: SocketAddress,
    ownId: number,
    start: AnsweredSyn & Pick<UtpStart, "yields">,
  ): UtpConnection {
    const key = connectionKey(remote, ownId);
    const receiveLimitBytes = this.#windowBytes;
    const connection = new UtpConnection({ local: socket.address, remote, receiveLimitBytes, ...start }, {
      clock: this.#options.clock,
      send: (datagram) => void socket.send(datagram, remote),
      closed: () => void this.#connections.delete(key),
    });
    this.#connections.set(key, connection);
    return connection;
  }
}

/** Eight bytes that nobody can guess. */
export function newToken(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(TOKEN_BYTES));
}

/** What the connection of a SYN with this id and number begins with, when the other end has replied. */
function startOf(id: number, seq: number, reply: UtpPacket): AnsweredSyn {
  return { sendId: (id + 1) & 0xffff, nextSeq: (seq + 1) & 0xffff, lastInOrder: (reply.seq - 1) & 0xffff };
}

function tooMany(): MillraceError {
  return new MillraceError("too_busy", "too many connections over UDP at once");
}

function tokenDatagram(token: Uint8Array): Uint8Array {
  const datagram = new Uint8Array(TOKEN_MARK.length + TOKEN_BYTES);
  datagram.set(TOKEN_MARK);
  datagram.set(token, TOKEN_MARK.length);
  return datagram;
}

function tokenOf(data: Uint8Array): Uint8Array | null {
  if (data.length !== TOKEN_MARK.length + TOKEN_BYTES) return null;
  return TOKEN_MARK.every((byte, i) => data[i] === byte) ? data.subarray(TOKEN_MARK.length) : null;
}

function connectionKey(remote: SocketAddress, ownId: number): string {
  return `${remote.host} ${remote.port} ${ownId}`;
}

function attemptKey(host: string, id: number): string {
  return `${host} ${id}`;
}
