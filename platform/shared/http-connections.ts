/**
 * The connections of an HTTP server. Without a bound, whoever opens enough of them takes all descriptors of the process:
 * Deno then never accepts again, and Bun spins. So their number is limited, one that waits for nothing makes room for a
 * new one, and callers elsewhere never take all places from the programs of this machine.
 */
import type { Socket } from "node:net";
import { machineKey } from "../../src/bytes/machine-key.ts";
import { descriptorLimit } from "./descriptors.ts";

/** Connections at once where descriptors do not matter: 200 clients that watch, each with a few, and browsers' spare ones. */
const MAX_CONNECTIONS = 1024;
/** Part of the process's descriptors that HTTP may take; peers (200 by default), files and the database need the rest. */
const DESCRIPTOR_SHARE = 1 / 2;
/**
 * Descriptors that stay free of the places: Deno accepts up to 128 connections before any that was dropped for them is
 * closed, and 64 are for the engine's own files and sockets on a system with very few.
 */
const UNPLACED_DESCRIPTORS = 128 + 64;
/** Even a system with very few descriptors serves this many. */
const MIN_CONNECTIONS = 16;
/** Part of the places that all other machines together may take. */
const REMOTE_SHARE = 3 / 4;
/** Part of the places that one other machine may take: a proxy for a whole house still fits. */
const HOST_SHARE = 1 / 4;
/** Requests that one connection may have under way. Browsers send one; pipelining (RFC 9112 section 9.3.2) is rare. */
const MAX_REQUESTS_UNDER_WAY = 16;

interface Entry {
  /** The machine it comes from; null: this one. */
  readonly host: string | null;
  requests: number;
}

/** How many connections a server holds in a process that may open so many `descriptors`; null: as many as it likes. */
export function connectionLimit(descriptors: number | null): number {
  if (descriptors === null) return MAX_CONNECTIONS;
  const share = Math.min(Math.floor(descriptors * DESCRIPTOR_SHARE), descriptors - UNPLACED_DESCRIPTORS);
  return Math.max(MIN_CONNECTIONS, Math.min(MAX_CONNECTIONS, share));
}

/** Open connections within their limits. */
export class HttpConnections {
  readonly #limit: number;
  /** The one whose last request ended longest ago comes first. */
  readonly #open = new Map<Socket, Entry>();
  #accepted = 0;

  constructor(limit: number = connectionLimit(descriptorLimit())) {
    this.#limit = limit;
  }

  /** Connections that ever came, those turned away included. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Takes in a new connection. One without a request under way may be dropped for it; if there is none, it is dropped itself. */
  admit(socket: Socket): void {
    this.#accepted++;
    const host = machineOf(socket.remoteAddress);
    if (!this.#makeRoom(host)) {
      socket.destroy();
      return;
    }
    this.#open.set(socket, { host, requests: 0 });
    socket.once("close", () => this.#open.delete(socket));
  }

  /** A request arrived on `socket`; false when it has too many under way. */
  begin(socket: Socket): boolean {
    const entry = this.#open.get(socket);
    if (entry === undefined) return true;
    return ++entry.requests <= MAX_REQUESTS_UNDER_WAY;
  }

  /** A request that `begin` was told of is over. */
  finish(socket: Socket): void {
    const entry = this.#open.get(socket);
    if (entry === undefined) return;
    entry.requests--;
    this.#open.delete(socket);
    this.#open.set(socket, entry);
  }

  /** Drops those without a request under way. */
  destroyIdle(): void {
    for (const [socket, { requests }] of this.#open) if (requests === 0) socket.destroy();
  }

  /** Drops all. */
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
   * Whether those that `counts` fill less than `share` of the places, if need be by dropping the one of `mayGo` that has
   * been idle for longest.
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

/** Null for this machine. */
function machineOf(address: string | undefined): string | null {
  if (address === undefined || /^(?:::ffff:)?127\.|^::1$/.test(address)) return null;
  return machineKey(address);
}
