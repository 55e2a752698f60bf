/** Connections through proxies that wait for another request to the same server. */
import type net from "node:net";

/** How many wait, and how long. */
export interface KeptLimits {
  /** One that nobody needed for this long is closed, ms. */
  readonly idleMs: number;
  /** To one server. */
  readonly maxPerServer: number;
  /** To all. */
  readonly max: number;
}

/** Sockets by the way that they lead and the server at its end. Node's agents do this, but take no socket that is connected. */
export class KeptSockets {
  readonly #limits: KeptLimits;
  /** The one that was used last comes last. */
  readonly #waiting = new Map<string, { readonly socket: net.Socket; release(): void }[]>();
  #count = 0;

  constructor(limits: KeptLimits) {
    this.#limits = limits;
  }

  /** One that may be written to, without listeners; null when none waits. */
  take(key: string): net.Socket | null {
    const entry = this.#waiting.get(key)?.at(-1);
    entry?.release();
    return entry?.socket ?? null;
  }

  /** Keeps `socket`, which has no listeners, or closes it. */
  keep(key: string, socket: net.Socket): void {
    const { idleMs, maxPerServer, max } = this.#limits;
    const waiting = this.#waiting.get(key) ?? [];
    socket.on("error", ignore);
    if (socket.destroyed || waiting.length >= maxPerServer || this.#count >= max) return void socket.destroy();
    const drop = () => {
      entry.release();
      socket.on("error", ignore);
      socket.destroy();
    };
    const entry = {
      socket,
      release: () => {
        this.#count--;
        waiting.splice(waiting.indexOf(entry), 1);
        if (waiting.length === 0) this.#waiting.delete(key);
        for (const event of ["data", "end", "close", "timeout"]) socket.off(event, drop);
        socket.off("error", ignore);
        socket.setTimeout(0);
        socket.ref();
      },
    };
    this.#count++;
    waiting.push(entry);
    this.#waiting.set(key, waiting);
    // Nothing is asked now, so whatever comes means that it is of no use.
    for (const event of ["data", "end", "close", "timeout"]) socket.on(event, drop);
    socket.setTimeout(idleMs);
    socket.unref();
    socket.resume();
  }
}

function ignore(): void {}
