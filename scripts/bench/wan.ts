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
}

/** Bytes that may be under way: a second and a half of 20 Mbit/s; beyond that TCP slows the seeder. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

/** Precision of timers, ms. */
const TIMER_MS = 1;

/** A relay that listens. */
export interface Link {
  readonly port: number;
  /** Stops everything in both directions; connections stay open. */
  freeze(): void;
  close(): void;
}

/** Delivers chunks late and in order, each not before the link has finished sending the previous one. */
class Pipe {
  private freeMs = 0;
  private queuedBytes = 0;
  private frozen = false;

  private readonly options: LinkOptions;

  constructor(options: LinkOptions) {
    this.options = options;
  }

  freeze(): void {
    this.frozen = true;
  }

  carry(from: net.Socket, to: net.Socket): void {
    /** In order, whatever order the timers fire in. */
    const onTheWay: { readonly chunk: Uint8Array; readonly dueMs: number }[] = [];
    const deliver = () => {
      while (onTheWay.length > 0 && onTheWay[0]!.dueMs <= performance.now() + TIMER_MS) {
        const { chunk } = onTheWay.shift()!;
        this.queuedBytes -= chunk.length;
        if (this.frozen) continue;
        if (this.queuedBytes <= MAX_QUEUED_BYTES) from.resume();
        if (!to.destroyed) to.write(chunk);
      }
    };
    from.on("data", (chunk: Uint8Array) => {
      const now = performance.now();
      this.freeMs = Math.max(now, this.freeMs) + chunk.length * 1000 / this.options.bytesPerS;
      this.queuedBytes += chunk.length;
      if (this.queuedBytes > MAX_QUEUED_BYTES) from.pause();
      onTheWay.push({ chunk, dueMs: this.freeMs + this.options.delayMs });
      setTimeout(deliver, Math.ceil(this.freeMs - now + this.options.delayMs));
    });
    from.on("close", () => setTimeout(() => to.destroy(), this.options.delayMs));
    from.on("error", () => {});
  }
}

/** Opens a relay to `target` on 127.0.0.1. */
export async function openLink(target: number, { delayMs, bytesPerS, host = "127.0.0.1" }: LinkOptions): Promise<Link> {
  const down = new Pipe({ delayMs, bytesPerS });
  const up = new Pipe({ delayMs, bytesPerS: Infinity });
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ noDelay: true }, (near) => {
    const far = net.connect({ host: "127.0.0.1", port: target, noDelay: true });
    for (const socket of [near, far]) sockets.add(socket.once("close", () => sockets.delete(socket)));
    up.carry(near, far);
    down.carry(far, near);
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
