/**
 * A far-away seeder: a relay on loopback in front of a near one, with a delay each way and a limited rate towards the
 * leecher, like an uplink. It does not model TCP's slow start: the full rate applies from the first byte.
 */
import net from "node:net";

/** The properties of a link. */
export interface LinkOptions {
  /** Delay each way, ms. */
  readonly delayMs: number;
  /** From the seeder to the leecher, bytes per second, all connections together. */
  readonly bytesPerS: number;
  /** Address of this machine where the leecher finds the seeder. Default 127.0.0.1. */
  readonly host?: string;
  /** Connecting takes a round trip, too. Default false. */
  readonly hasHandshake?: boolean;
}

/** Bytes that may be under way: a second and a half of 20 Mbit/s; beyond that TCP slows the seeder. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

/** Precision of timers, ms. */
const TIMER_MS = 1;

/** A link delivers what it carries in parts of this size: all of a chunk of 64 KiB would come 0.26 s late at 2 Mbit/s. */
const PACKET_BYTES = 4096;

/** A relay that listens. */
export interface Link {
  readonly port: number;
  /** Stops everything in both directions; connections stay open. */
  freeze(): void;
  close(): void;
}

interface Packet {
  readonly bytes: Uint8Array;
  readonly dueMs: number;
  readonly from: net.Socket;
  readonly to: net.Socket;
}

/** Delivers packets late and in order, each not before the link has finished sending the previous one. */
class Pipe {
  readonly #options: LinkOptions;
  readonly #onTheWay: Packet[] = [];
  #freeMs = 0;
  #queuedBytes = 0;
  #frozen = false;
  #waiting = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  freeze(): void {
    this.#frozen = true;
  }

  carry(from: net.Socket, to: net.Socket): void {
    from.on("data", (chunk: Uint8Array) => {
      this.#queuedBytes += chunk.length;
      if (this.#queuedBytes > MAX_QUEUED_BYTES) from.pause();
      this.#freeMs = Math.max(performance.now(), this.#freeMs);
      for (let at = 0; at < chunk.length; at += PACKET_BYTES) {
        const bytes = chunk.subarray(at, at + PACKET_BYTES);
        this.#freeMs += bytes.length * 1000 / this.#options.bytesPerS;
        this.#onTheWay.push({ bytes, dueMs: this.#freeMs + this.#options.delayMs, from, to });
      }
      this.#wait();
    });
    from.on("close", () => setTimeout(() => to.destroy(), this.#options.delayMs));
    from.on("error", () => {});
  }

  #wait(): void {
    if (this.#waiting || this.#onTheWay.length === 0) return;
    this.#waiting = true;
    setTimeout(() => {
      this.#waiting = false;
      this.#deliver();
      this.#wait();
    }, Math.max(0, Math.ceil(this.#onTheWay[0]!.dueMs - performance.now())));
  }

  #deliver(): void {
    const nowMs = performance.now() + TIMER_MS;
    while (this.#onTheWay.length > 0 && this.#onTheWay[0]!.dueMs <= nowMs) {
      const { bytes, from, to } = this.#onTheWay.shift()!;
      this.#queuedBytes -= bytes.length;
      if (this.#frozen) continue;
      if (this.#queuedBytes <= MAX_QUEUED_BYTES) from.resume();
      if (!to.destroyed) to.write(bytes);
    }
  }
}

/** Opens a relay to `target` on 127.0.0.1. */
export async function openLink(target: number, link: LinkOptions): Promise<Link> {
  const { delayMs, bytesPerS, host = "127.0.0.1", hasHandshake = false } = link;
  const down = new Pipe({ delayMs, bytesPerS });
  const up = new Pipe({ delayMs, bytesPerS: Infinity });
  const sockets = new Set<net.Socket>();
  const connect = (near: net.Socket) => {
    const far = net.connect({ host: "127.0.0.1", port: target, noDelay: true });
    for (const socket of [near, far]) sockets.add(socket.once("close", () => sockets.delete(socket)));
    up.carry(near, far);
    down.carry(far, near);
  };
  const server = net.createServer({ noDelay: true }, (near) => {
    if (hasHandshake) setTimeout(() => connect(near), 2 * delayMs);
    else connect(near);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    freeze() {
      down.freeze();
      up.freeze();
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
