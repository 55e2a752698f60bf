/** Broadcasters and viewers over real TCP on this machine. */
import { readFileSync } from "node:fs";
import { concatBytes } from "../../src/bytes/hex.ts";
import { startBroadcast } from "../../src/live/broadcast/broadcast.ts";
import type { Broadcast, BroadcastOptions } from "../../src/live/broadcast/broadcast-types.ts";
import type { LiveFeed } from "../../src/live/node/stream/feed.ts";
import type { LiveInput, LiveInputEvent } from "../../src/live/broadcast/input.ts";
import type { LiveSwarm } from "../../src/live/swarm/live-swarm.ts";
import { LiveSwarmManager } from "../../src/live/swarm/live-swarms.ts";
import type { Ports } from "../../src/ports.ts";
import type { Lease } from "../../src/swarm/leases.ts";
import type { SwarmManagerOptions, TorrentSwarmManager } from "../../src/swarm/manager.ts";
import type { LiveMetainfo } from "../../src/metainfo/live.ts";
import { bareMagnet } from "../../src/content/resolve.ts";
import { Lab } from "../swarm/support/lab.ts";

const CLIP = new Uint8Array(readFileSync(new URL("../fixtures/ts-188.ts", import.meta.url)));

/** Bytes a second of the test's source: 1 Mb/s. */
export const RATE = 125_000;

/** Bytes a second of the clip by its own clock. */
export const CLIP_RATE = 21_100;

/** A source that sends the same clip again and again at `bytesPerS`, until stopped. */
export class LoopInput implements LiveInput {
  readonly #bytesPerS: number;
  #stopped = false;
  #wake: () => void = () => {};
  #pending: LiveInputEvent[] = [];

  constructor(bytesPerS: number = RATE) {
    this.#bytesPerS = bytesPerS;
  }

  /** The source ends. */
  end(): void {
    this.#stopped = true;
    this.#wake();
  }

  /** The source is lost, and back at once. */
  lose(reason: string): void {
    this.#pending.push({ kind: "lost", reason });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LiveInputEvent> {
    let sent = 0;
    const startMs = performance.now();
    while (!this.#stopped) {
      yield* this.#pending.splice(0);
      const due = Math.floor((performance.now() - startMs) / 1000 * this.#bytesPerS) - sent;
      if (due > 0) {
        const bytes = new Uint8Array(due);
        for (let at = 0; at < due;) {
          const from = (sent + at) % CLIP.length;
          const part = CLIP.subarray(from, Math.min(CLIP.length, from + due - at));
          bytes.set(part, at);
          at += part.length;
        }
        sent += due;
        yield { kind: "data", bytes };
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 40);
        this.#wake = () => (clearTimeout(timer), resolve());
      });
    }
  }
}

/** One engine's worth of swarms. */
export interface LiveNodeLab {
  readonly manager: TorrentSwarmManager;
  readonly live: LiveSwarmManager;
  readonly address: { host: string; port: number };
}

/** A viewer and its reader. */
export interface Viewer extends LiveNodeLab {
  readonly lease: Lease<LiveSwarm>;
  readonly swarm: LiveSwarm;
  readonly feed: LiveFeed;
  /** Sequence number → bytes of the pieces that the reader got so far. */
  readonly got: Map<number, Uint8Array>;
  /** Monotonic ms from joining to the first piece; null before. */
  readonly startMs: () => number | null;
}

/** A small swarm on a clock and network of the test's own. */
export class LiveLab {
  readonly ports: Ports;
  readonly #lab: Lab;
  readonly #closers: (() => Promise<void> | void)[] = [];

  private constructor(lab: Lab) {
    this.#lab = lab;
    this.ports = lab.ports;
  }

  /** Runs `body` with a lab that is torn down afterwards, whatever happens. */
  static run(body: (lab: LiveLab) => Promise<void>): Promise<void> {
    return Lab.run(async (inner) => {
      const lab = new LiveLab(inner);
      try {
        await body(lab);
      } finally {
        for (const close of lab.#closers.reverse()) await close();
      }
    });
  }

  async node(options: Partial<SwarmManagerOptions> & { ports?: Ports } = {}): Promise<LiveNodeLab> {
    const { manager, address } = await this.#lab.node(options);
    const live = new LiveSwarmManager({ manager });
    return { manager, live, address };
  }

  /** A broadcast of the test's source. */
  async broadcast(
    at: LiveNodeLab,
    options: Partial<BroadcastOptions> = {},
  ): Promise<{ broadcast: Broadcast; input: LoopInput; swarm: LiveSwarm }> {
    const input = new LoopInput();
    const broadcast = await startBroadcast(
      {
        files: this.ports.files,
        sha256: this.ports.sha256,
        log: this.ports.log,
        clock: this.ports.clock,
        swarms: at.live,
      },
      // Pieces of half a second.
      { input, name: "Test", directory: null, bytesPerS: RATE, pieceLengthBytes: 65_536, ...options },
    );
    this.#closers.push(() => broadcast.close());
    return { broadcast, input, swarm: at.live.list()[0]! };
  }

  /** Joins `metainfo` knowing `peers`, and reads. */
  async viewer(
    metainfo: LiveMetainfo,
    peers: readonly { host: string; port: number }[],
    options: Partial<SwarmManagerOptions> & { ports?: Ports } = {},
  ): Promise<Viewer> {
    return this.watch(await this.node(options), metainfo, peers);
  }

  /** Reads at a node that stands. */
  watch(node: LiveNodeLab, metainfo: LiveMetainfo, peers: readonly { host: string; port: number }[]): Viewer {
    const magnet = { ...bareMagnet(metainfo.infohashHex), peers: peers.map(({ host, port }) => `${host}:${port}`) };
    const joinedMs = performance.now();
    const lease = node.live.acquire({ metainfo, magnet });
    const { swarm } = lease;
    const feed = swarm.node.openFeed();
    const got = new Map<number, Uint8Array>();
    let startMs: number | null = null;
    const take = () => {
      for (const { header, blocks } of feed.take(this.ports.clock.monotonic())) {
        startMs ??= performance.now() - joinedMs;
        got.set(header.seq, concatBytes(blocks));
      }
    };
    const stop = swarm.onPiece(take);
    const timer = setInterval(take, 50);
    this.#closers.push(() => {
      clearInterval(timer);
      stop();
      swarm.node.closeFeed(feed);
      lease.release();
    });
    return { ...node, lease, swarm, feed, got, startMs: () => startMs };
  }
}
