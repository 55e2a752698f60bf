/** Swarm managers of several engines over real TCP on this machine. */
import { loadPorts } from "../../../platform/detect.ts";
import type { Ports } from "../../../src/ports.ts";
import type { PieceCache } from "../../../src/storage/piece-store.ts";
import type { Lease } from "../../../src/swarm/leases.ts";
import { createSwarmManager, type SwarmManagerOptions, type TorrentSwarmManager } from "../../../src/swarm/manager.ts";
import type { TorrentSwarm } from "../../../src/swarm/torrent/torrent-swarm.ts";
import type { SwarmTarget } from "../../../src/swarm/types.ts";
import { createPeerId } from "../../../src/wire/peer-id.ts";
import { MemoryCache, MemoryStore } from "./memory-cache.ts";
import type { TestTorrent } from "./torrent.ts";

/** A peer under test. */
export interface Node {
  readonly manager: TorrentSwarmManager;
  readonly cache: PieceCache;
  readonly address: { host: string; port: number };
  join(target: SwarmTarget): Lease<TorrentSwarm>;
}

/** Starts peers and closes them all. */
export class Lab {
  readonly ports: Ports;
  readonly #nodes: Node[] = [];

  private constructor(ports: Ports) {
    this.ports = ports;
  }

  /** Runs `body` with a lab that is torn down afterwards, whatever happens. */
  static async run(body: (lab: Lab) => Promise<void>): Promise<void> {
    const lab = new Lab(await loadPorts({ log: { level: "error" } }));
    try {
      await body(lab);
    } finally {
      await Promise.all(lab.#nodes.map((node) => node.manager.close()));
      await Promise.all(lab.#nodes.map((node) => node.cache.close()));
    }
  }

  /** A peer on 127.0.0.1, or another loopback address. */
  async node(options: Partial<SwarmManagerOptions> & { ports?: Ports } = {}): Promise<Node> {
    const { ports = this.ports, ...rest } = options;
    const cache = rest.cache ?? new MemoryCache();
    const manager = await createSwarmManager(ports, {
      peerId: createPeerId(),
      peerHost: "127.0.0.1",
      ...rest,
      cache,
    });
    const node: Node = {
      manager,
      cache,
      address: manager.peerAddress!,
      join: (target) => manager.acquire(target),
    };
    this.#nodes.push(node);
    return node;
  }

  /** A peer that has the whole torrent. */
  async seeder(torrent: TestTorrent, options: Partial<SwarmManagerOptions> & { ports?: Ports } = {}): Promise<Node> {
    const cache = new MemoryCache();
    cache.stores.set(torrent.metainfo.infohashHex, filledStore(torrent));
    const node = await this.node({ ...options, cache });
    const { swarm } = node.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    return node;
  }
}

/** Ports whose clock runs `factor` times faster, for things that take minutes by design. */
export function hurried(ports: Ports, factor: number): Ports {
  const { clock } = ports;
  return {
    ...ports,
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() * factor,
      setTimeout: (fn, delayMs) => clock.setTimeout(fn, delayMs / factor),
    },
  };
}

/** A store that holds all pieces. */
export function filledStore(torrent: TestTorrent): MemoryStore {
  const store = new MemoryStore(torrent.metainfo);
  for (let i = 0; i < torrent.metainfo.pieceCount; i++) void store.put(i, torrent.piece(i));
  store.closed = true;
  return store;
}

/** A signal that makes a hanging test fail. */
export function soon(ms = 15_000): AbortSignal {
  return AbortSignal.timeout(ms);
}
