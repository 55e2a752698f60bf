/** The broadcasts that are being played: sessions on the same one share its window. */
import type { LiveSource, LiveSwarms, LiveTarget } from "../../live/swarm/live-source.ts";
import type { Clock, Logger } from "../../ports.ts";
import type { Lease } from "../../swarm/leases.ts";
import { faultFields } from "../../bytes/guarded-clock.ts";
import { LiveStream, type LiveStreamOptions } from "./live-stream.ts";

/** How the window of a new stream of that infohash is kept. */
export type LiveWindowMaker = (infohashHex: string) => Pick<LiveStreamOptions, "limits" | "files">;

/** What a stream is made from. */
export interface StreamOrigin {
  /** 40 hexadecimal digits: streams of the same are one. */
  readonly infohashHex: string;
  /** Joins it. Throws `closed`, or `too_busy`. */
  acquire(): Lease<LiveSource>;
}

/** The broadcast `target` as the origin of a stream. */
export function broadcastOrigin(swarms: LiveSwarms, target: LiveTarget): StreamOrigin {
  return { infohashHex: target.metainfo.infohashHex, acquire: () => swarms.acquire(target) };
}

/** A session's hold on a stream. */
export interface LiveStreamLease {
  readonly stream: LiveStream;
  release(): void;
}

/** Broadcasts whose last segment number is remembered. */
const MAX_REMEMBERED = 1000;

interface Entry {
  readonly stream: LiveStream;
  readonly lease: Lease<LiveSource>;
  users: number;
}

/** Opens broadcasts for sessions and closes them after the last one. */
export class LiveStreams {
  readonly #clock: Clock;
  readonly #windowOf: LiveWindowMaker;
  readonly #entries = new Map<string, Entry>();
  /** Infohash → number of the next segment, of broadcasts that were played before: no number comes twice. */
  readonly #numbers = new Map<string, number>();
  /** Windows that are being removed from the disk. */
  readonly #closing = new Set<Promise<void>>();
  readonly #log: Logger | null;

  /** `log`: where faults of streams are reported. */
  constructor(clock: Clock, windowOf: LiveWindowMaker, log: Logger | null = null) {
    this.#log = log;
    this.#clock = clock;
    this.#windowOf = windowOf;
  }

  /** Joins a broadcast, or shares what is joined. Throws as `StreamOrigin.acquire`. */
  open(origin: StreamOrigin): LiveStreamLease {
    const { infohashHex } = origin;
    const running = this.#entries.get(infohashHex);
    // A broadcast that ended stays for its readers. If the broadcaster continued under the same id, it is joined again.
    const isOver = running === undefined || running.stream.ended || running.stream.ending.aborted;
    const entry = isOver ? this.#join(origin) : running;
    entry.users++;
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      if (--entry.users > 0) return;
      this.#end(entry.stream);
      entry.lease.release();
      this.#remember(infohashHex, entry.stream.cuts.next);
      if (this.#entries.get(infohashHex) === entry) this.#entries.delete(infohashHex);
    };
    return { stream: entry.stream, release };
  }

  /** Ends all streams; resolves when nothing of them is left on disk. */
  async close(): Promise<void> {
    for (const { stream } of this.#entries.values()) this.#end(stream);
    await Promise.all(this.#closing);
  }

  #end(stream: LiveStream): void {
    const closing: Promise<void> = stream.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  #join({ infohashHex, acquire }: StreamOrigin): Entry {
    const lease = acquire();
    const least = this.#entries.get(infohashHex)?.stream.cuts.next ?? this.#numbers.get(infohashHex) ?? 0;
    const entry = {
      lease,
      stream: new LiveStream(lease.swarm, this.#clock, {
        ...this.#windowOf(infohashHex),
        leastNumber: least,
        broke: (error) => {
          const fields = { infohash: infohashHex, ...faultFields(error) };
          this.#log?.log("error", "a fault of the engine ended the window of a broadcast", fields);
        },
      }),
      users: 0,
    };
    this.#entries.set(infohashHex, entry);
    return entry;
  }

  #remember(infohashHex: string, next: number | null): void {
    const before = this.#numbers.get(infohashHex) ?? 0;
    this.#numbers.delete(infohashHex);
    this.#numbers.set(infohashHex, Math.max(before, next ?? 0));
    const oldest = this.#numbers.keys().next().value;
    if (this.#numbers.size > MAX_REMEMBERED && oldest !== undefined) this.#numbers.delete(oldest);
  }
}
