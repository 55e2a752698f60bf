/** What the magnets of one torrent named that its metadata (BEP 9) does not hold. */
import { MillraceError } from "../../errors.ts";
import { type AnyMetainfo, parseAnyInfo } from "../../metainfo/live.ts";
import { MAX_URLS } from "../../metainfo/limits.ts";
import type { Magnet } from "../../metainfo/types.ts";
import type { SwarmTarget } from "../types.ts";

/** Fields without a usable address that are kept: enough to see what is wrong with a link. */
const MAX_UNREAD = 20;

/**
 * Magnets that are kept whole until the metadata is known: those of several items of the library. Each may have 64 KiB, and
 * 256 swarms may wait.
 */
const MAX_TARGETS = 4;

/** What all magnets of the torrent named so far. */
export class MagnetFacts {
  readonly #targets: SwarmTarget[] = [];
  readonly trackers = new Set<string>();
  readonly webSeeds = new Set<string>();
  /** Fields that hold no usable address, `tr=…`. */
  readonly unread = new Set<string>();

  /** The first targets that `keep` got. */
  get targets(): readonly SwarmTarget[] {
    return this.#targets;
  }

  /** Keeps a magnet with the scope of its servers, for a swarm that may take this one over. */
  keep(target: SwarmTarget): void {
    if (this.#targets.length < MAX_TARGETS) this.#targets.push(target);
  }

  /** The metadata is known: no other swarm needs the targets. */
  forgetTargets(): void {
    this.#targets.length = 0;
  }

  /** Adds what `magnet` names. */
  learn({ trackers, webSeeds, unread = [] }: Magnet): void {
    addUpTo(MAX_URLS, this.trackers, trackers);
    addUpTo(MAX_URLS, this.webSeeds, webSeeds);
    addUpTo(MAX_UNREAD, this.unread, unread);
  }

  /** Reads a bencoded `info`, with what the magnets named beside it. Rejects as `parseAnyInfo`, always with a `MillraceError`. */
  async describe(infoBytes: Uint8Array): Promise<AnyMetainfo> {
    const trackers = [...this.trackers].map((url) => [url]);
    try {
      return await parseAnyInfo(infoBytes, { trackers, webSeeds: [...this.webSeeds] });
    } catch (cause) {
      if (cause instanceof MillraceError) throw cause;
      throw new MillraceError("bad_transport_file", "the metadata is unreadable", { cause });
    }
  }
}

function addUpTo(most: number, known: Set<string>, values: readonly string[]): void {
  for (const value of values) if (known.size < most) known.add(value);
}
