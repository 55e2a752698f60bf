/**
 * Limits the connections of an HTTP server. Without a bound, a client that opens enough of them takes all descriptors of the
 * process: Deno then never accepts again, and Bun spins. So their number is limited, an idle one makes room for a new one,
 * and callers on other machines can never take all places from programs on this machine.
 */
import type { Socket } from "node:net";
import { machineKey } from "../../src/bytes/machine-key.ts";
import { descriptorLimit } from "./descriptors.ts";

/** Most connections where descriptors are plentiful: a few for each of 200 viewers, and browsers' spare ones. */
const MAX_CONNECTIONS = 1024;
/** Share of the process's descriptors that HTTP may take; peers (200 by default), files and the database need the rest. */
const DESCRIPTOR_SHARE = 1 / 2;
/**
 * Descriptors that connections never get: Deno accepts up to 128 connections before it closes any that was dropped for
 * them, and 64 are for the engine's own files and sockets on a system with very few.
 */
const UNPLACED_DESCRIPTORS = 128 + 64;
/** Even a system with very few descriptors serves this many. */
const MIN_CONNECTIONS = 16;
/** Share of the places that all other machines together may take. */
const REMOTE_SHARE = 3 / 4;
/** Share of the places that one other machine may take: enough for the proxy of a whole house. */
const HOST_SHARE = 1 / 4;
/** Requests that one connection may have under way. Browsers send one; pipelining (RFC 9112 section 9.3.2) is rare. */
const MAX_REQUESTS_UNDER_WAY = 16;

interface Entry {
  /** The machine the connection comes from; null: this one. */
  readonly host: string | null;
  requests: number;
  /** When (`performance.now()`) its client was last sent something, or asked for it; Infinity: what was sent waits for the client. */
  quietSinceMs: number;
}

/** Returns those of `sockets` whose clients send no more: they closed their side, or left. */
export type EndedSockets = (sockets: readonly Socket[]) => Promise<readonly Socket[]>;

/** Most connections of a server in a process that may open `descriptors`; null: no limit on them. */
export function connectionLimit(descriptors: number | null): number {
  if (descriptors === null) return MAX_CONNECTIONS;
  const share = Math.min(Math.floor(descriptors * DESCRIPTOR_SHARE), descriptors - UNPLACED_DESCRIPTORS);
  return Math.max(MIN_CONNECTIONS, Math.min(MAX_CONNECTIONS, share));
}

/** Open connections within their limits. */
export class HttpConnections {
  readonly #limit: number;
  /** Ordered so that the connection whose last request ended longest ago comes first. */
  readonly #open = new Map<Socket, Entry>();
  #accepted = 0;

  constructor(limit: number = connectionLimit(descriptorLimit())) {
    this.#limit = limit;
  }

  /** All connections that ever came, including those turned away. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Admits a new connection. If the places are full, an idle connection is dropped for it; if there is none, the new one is. */
  admit(socket: Socket): void {
    this.#accepted++;
    const host = machineOf(socket.remoteAddress);
    if (!this.#makeRoom(host)) {
      socket.destroy();
      return;
    }
    this.#open.set(socket, { host, requests: 0, quietSinceMs: Infinity });
    socket.once("close", () => this.#open.delete(socket));
  }

  /** Counts a request that arrived on `socket`; false when it has too many under way. */
  begin(socket: Socket): boolean {
    const entry = this.#open.get(socket);
    if (entry === undefined) return true;
    entry.quietSinceMs = performance.now();
    return ++entry.requests <= MAX_REQUESTS_UNDER_WAY;
  }

  /** Part of a response was sent on `socket`, or waits for the client to take it: a client that left refuses it. */
  sent(socket: Socket, isTaken: boolean): void {
    const entry = this.#open.get(socket);
    if (entry !== undefined) entry.quietSinceMs = isTaken ? performance.now() : Infinity;
  }

  /** Drops connections with a request under way on which nothing was sent for `quietMs`, if their client sends no more. */
  async destroyLeft(quietMs: number, ended: EndedSockets): Promise<void> {
    const sinceMs = performance.now() - quietMs;
    const isQuiet = (entry: Entry | undefined) =>
      entry !== undefined && entry.requests > 0 && entry.quietSinceMs <= sinceMs;
    const quiet = [...this.#open].filter(([, entry]) => isQuiet(entry)).map(([socket]) => socket);
    if (quiet.length === 0) return;
    // What began to be sent meanwhile finds out by itself.
    for (const socket of await ended(quiet)) if (isQuiet(this.#open.get(socket))) socket.destroy();
  }

  /** Ends a request that `begin` counted. */
  finish(socket: Socket): void {
    const entry = this.#open.get(socket);
    if (entry === undefined) return;
    entry.requests--;
    this.#open.delete(socket);
    this.#open.set(socket, entry);
  }

  /** Drops the connections without a request under way. */
  destroyIdle(): void {
    for (const [socket, { requests }] of this.#open) if (requests === 0) socket.destroy();
  }

  /** Drops all connections. */
  destroyAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #makeRoom(host: string | null): boolean {
    const isRemote = (entry: Entry) => entry.host !== null;
    if (host !== null) {
      if (!this.#within(HOST_SHARE, (entry) => entry.host === host)) return false;
      return this.#within(REMOTE_SHARE, isRemote) && this.#within(1, isRemote, () => true);
    }
    return this.#within(1, isRemote, () => true) || this.#within(1, () => true);
  }

  /**
   * Whether the connections that `counts` selects leave a place free within `share` of all places. If not, the connection
   * selected by `mayGo` that has been idle for longest is dropped to free one.
   */
  #within(share: number, mayGo: (entry: Entry) => boolean, counts = mayGo): boolean {
    let count = 0;
    let idle: Socket | null = null;
    for (const [socket, entry] of this.#open) {
      if (counts(entry)) count++;
      if (idle === null && entry.requests === 0 && mayGo(entry)) idle = socket;
    }
    if (count < Math.floor(this.#limit * share)) return true;
    if (idle === null) return false;
    this.#open.delete(idle);
    idle.destroy();
    return true;
  }
}

/** Key of the machine with this address; null for this machine. */
function machineOf(address: string | undefined): string | null {
  if (address === undefined || /^(?:::ffff:)?127\.|^::1$/.test(address)) return null;
  return machineKey(address);
}
