/** What the magnets of one torrent named that its metadata (BEP 9) does not hold. */
import { MillraceError } from "../errors.ts";
import { type AnyMetainfo, parseAnyInfo } from "../metainfo/live.ts";
import { MAX_URLS } from "../metainfo/limits.ts";
import type { Magnet } from "../metainfo/types.ts";
import type { SwarmTarget } from "./types.ts";

/** Fields without a usable address that are kept: enough to see what is wrong with a link. */
const MAX_UNREAD = 20;

/** Magnets that are kept whole: those of several items, or of several lists. */
const MAX_TARGETS = 16;

/** What all magnets of the torrent named so far. */
export class MagnetFacts {
  /** The first of them, with the scopes of their servers. */
  readonly targets: SwarmTarget[] = [];
  readonly trackers = new Set<string>();
  readonly webSeeds = new Set<string>();
  /** Fields that hold no usable address, `tr=…`. */
  readonly unread = new Set<string>();

  /** Adds what the magnet in `target` names. */
  learn(target: SwarmTarget & { readonly magnet: Magnet }): void {
    const { magnet: { trackers, webSeeds, unread = [] } } = target;
    if (this.targets.length < MAX_TARGETS) this.targets.push(target);
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
