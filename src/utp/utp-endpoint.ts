/**
 * One UDP socket for uTP connections that a common neighbour arranged. It takes none from anybody else: a SYN that belongs
 * to no arrangement is refused, so that the other end tries TCP at once instead of waiting for a reply. All other datagrams
 * of strangers are dropped. A refusal is no longer than its SYN, and few leave: the sender's address may be forged.
 */
import { Allowance, Allowances } from "../bytes/allowance.ts";
import { guarded } from "../bytes/guarded-clock.ts";
import { toHex } from "../bytes/hex.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { Clock, SocketAddress, Timer, UdpSocket } from "../ports.ts";
import { decodePacket, encodePacket, PACKET, type UtpPacket } from "./packet.ts";
import { UtpConnection } from "./utp-connection.ts";

/** Bytes of a token. */
export const TOKEN_BYTES = 8;
/** A token datagram is these bytes and the token: neither uTP nor bencoding begins like that. */
const TOKEN_MARK = new TextEncoder().encode("live");

/**
 * When datagrams of an arrangement leave, ms after its beginning. Both ends begin within a round trip, and one or two
 * may be lost.
 */
const PUNCH_AT_MS = [0, 100, 250, 500, 800, 1_200, 1_700, 2_300];
/** Bounds: connections, arrangements under way, tokens expected. */
const MAX_CONNECTIONS = 256;
const MAX_PUNCHES = 16;
const MAX_TOKENS = 64;
/** Refusals per second and at once: to one address, as many as its torrents may dial us for, and in total. */
const HOST_REFUSALS_PER_S = 2;
const HOST_REFUSALS_AT_ONCE = 10;
const REFUSALS_PER_S = 50;
const REFUSALS_AT_ONCE = 100;
/** Addresses whose rate is remembered. */
const MAX_REFUSED_HOSTS = 1_024;
/** Advertised in a SYN, bytes. The first packet of the connection replaces it. */
const SYN_WINDOW_BYTES = 64 * 1024;

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
  readonly #tokens = new Map<string, (from: SocketAddress) => void>();
  readonly #refusals: Allowance;
  readonly #hostRefusals: Allowances;
  #closed = false;

  constructor(options: UtpEndpointOptions) {
    this.#options = options;
    const nowMs = () => options.clock.monotonic();
    this.#refusals = new Allowance(REFUSALS_PER_S, REFUSALS_AT_ONCE, nowMs());
    this.#hostRefusals = new Allowances({
      perSecond: HOST_REFUSALS_PER_S,
      most: HOST_REFUSALS_AT_ONCE,
      limit: MAX_REFUSED_HOSTS,
      nowMs,
    });
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
      throw new MillraceError("too_busy", "too many connections over UDP at once");
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
    const nowUs = Math.floor(this.#options.clock.monotonic() * 1000);
    const datagram = !punch.isInitiator ? tokenDatagram(punch.token) : encodePacket({
      type: PACKET.syn,
      connectionId: id,
      timestampUs: nowUs,
      timestampDifferenceUs: 0,
      windowBytes: SYN_WINDOW_BYTES,
      seq,
      ack: 0,
      selectiveAck: null,
      payload: new Uint8Array(0),
    });
    void socket.send(datagram, target);
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
    if (attempt !== undefined) this.#answered(socket, attempt, packet, from);
    else if (isSyn) this.#refuse(socket, packet, from);
  }

  /** Tells a stranger that no connection comes about: libtorrent recognises a reset by the id of its own SYN. */
  #refuse(socket: UdpSocket, { connectionId, seq, timestampUs }: UtpPacket, from: SocketAddress): void {
    const nowMs = () => this.#options.clock.monotonic();
    if (!this.#hostRefusals.take(from.host) || !this.#refusals.take(1, nowMs)) return;
    const nowUs = Math.floor(nowMs() * 1000);
    const reset = encodePacket({
      type: PACKET.reset,
      connectionId,
      timestampUs: nowUs,
      timestampDifferenceUs: nowUs - timestampUs,
      windowBytes: 0,
      seq: Math.floor(this.#options.random() * 0x10000),
      ack: seq,
      selectiveAck: null,
      payload: new Uint8Array(0),
    });
    void socket.send(reset, from);
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
    const nextId = (id + 1) & 0xffff;
    if (punch.isInitiator) {
      if (packet.type !== PACKET.state || packet.ack !== seq) return;
      const ids = { sendId: nextId, nextSeq: (seq + 1) & 0xffff, lastInOrder: (packet.seq - 1) & 0xffff };
      return attempt.connected(this.#add(socket, from, id, ids));
    }
    if (packet.type !== PACKET.syn) return;
    const connection = this.#add(socket, from, nextId, { sendId: id, nextSeq: seq, lastInOrder: packet.seq });
    connection.acknowledge();
    attempt.connected(connection);
  }

  #add(
    socket: UdpSocket,
    remote: SocketAddress,
    ownId: number,
    ids: { sendId: number; nextSeq: number; lastInOrder: number },
  ): UtpConnection {
    const key = connectionKey(remote, ownId);
    const connection = new UtpConnection({ local: socket.address, remote, ...ids }, {
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
