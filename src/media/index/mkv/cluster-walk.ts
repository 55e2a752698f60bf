/** Walks the clusters of a byte range and yields their blocks; finds the next cluster after damage. */
import type { ByteLender, ByteSource } from "../../../bytes/source.ts";
import { turnWhenDue } from "../../../bytes/turn.ts";
import { readBlockHead } from "./block.ts";
import { ByteWindow } from "../../source/byte-window.ts";
import { children, type ElementBudget, MAX_HEADER_BYTES, readHeader, uint } from "./ebml.ts";
import { ID, SEGMENT_CHILDREN } from "./ids.ts";

/** A block in place. `bytes` stays valid until the walk gives it back. */
export interface WalkedBlock {
  readonly clusterAt: number;
  /** Position of the block's element after the cluster's header. */
  readonly blockAt: number;
  /** Size of that element, bytes. */
  readonly elementBytes: number;
  readonly track: number;
  /** In timestamp units. */
  readonly time: number;
  readonly keyframe: boolean;
  /** How long it is shown, in timestamp units; null: the file does not say. */
  readonly duration: number | null;
  /** Settings of a text that stand beside it (`BlockAdditional`), as long as `bytes` are valid; null: none. */
  readonly beside: Uint8Array | null;
  readonly flags: number;
  /** The block's payload after its head is `bytes[body, end)`. */
  readonly bytes: Uint8Array;
  readonly body: number;
  readonly end: number;
}

/** Where a block is. */
type BlockPlace = Pick<WalkedBlock, "clusterAt" | "blockAt" | "elementBytes">;

/** Read size, bytes: the smallest that the timeline's contract recommends, so that the first frames come early. */
const CHUNK_BYTES = 512 * 1024;
/**
 * Largest block, bytes; larger ones are skipped unread. A picture of 8K HEVC at level 6.2 has 6.6 MB at most (least
 * compression ratio 8, ITU-T H.265 A.4.2). A reader holds a block three times: as read, as held for its order, as packets.
 */
const MAX_BLOCK_BYTES = 8 * 1024 * 1024;
/** Elements between two checks of the clock: a millisecond or so. */
const TURN_STEPS = 2048;
/** Most elements of a block group to read: real ones have 10 at most. */
const MAX_GROUP_ELEMENTS = 64;

/** Longest additions to a block that are read, bytes: settings of WebVTT have some dozens. */
const MAX_BESIDE_BYTES = 4096;

const BLOCK_LEVEL: ReadonlySet<number> = new Set([
  ID.TIMESTAMP,
  ID.SIMPLE_BLOCK,
  ID.BLOCK_GROUP,
  ID.ENCRYPTED_BLOCK,
  ID.POSITION,
  ID.PREV_SIZE,
  ID.SILENT_TRACKS,
  ID.VOID,
  ID.CRC32,
]);

/** Bytes needed to distinguish a cluster from random data. */
const PROBE_BYTES = 64;

/** Whether there is a cluster at `at`. Its ID alone occurs by chance every 4 GiB, so its first children are checked too. */
function looksLikeCluster(bytes: Uint8Array, at: number, end: number): boolean {
  const cluster = readHeader(bytes, at, end);
  if (typeof cluster === "string" || cluster.id !== ID.CLUSTER) return false;
  let position = cluster.body;
  for (let i = 0; i < 3; i++) {
    const child = readHeader(bytes, position, end);
    if (child === "more") return i > 0;
    if (child === "damaged" || child.sizeBytes === null || !BLOCK_LEVEL.has(child.id)) return false;
    if (cluster.sizeBytes !== null && child.body + child.sizeBytes > cluster.body + cluster.sizeBytes) return false;
    if (child.id === ID.TIMESTAMP) return child.sizeBytes <= 8;
    position = child.body + child.sizeBytes;
  }
  return false;
}

/** Whether there is a cluster at `position`. Rejects as the source does. */
export async function hasCluster(source: ByteSource, position: number, signal: AbortSignal): Promise<boolean> {
  const length = Math.min(PROBE_BYTES, source.sizeBytes - position);
  if (length <= 0) return false;
  return looksLikeCluster(await source.read(position, length, { signal }), 0, length);
}

/** What is known about a walk before it begins. */
export interface ClusterWalkOptions {
  /**
   * Called for each block before it is read: true ends the walk there. Default: it continues to the end of the file.
   */
  readonly stop?: (clusterAt: number, blockAt: number) => boolean;
  /** Where it is expected to end: little is read after it. Default: not known. */
  readonly untilBytes?: number;
  /** Called with the place of each block that is too large to be read. */
  readonly onTooLarge?: (position: number) => void;
  /** Takes memory back, see `giveBack`. Default: nobody does. */
  readonly lender?: ByteLender | undefined;
}

/** A walk over clusters. Blocks come in file order. */
export class ClusterWalk {
  readonly #window: ByteWindow;
  #clusterAt = -1;
  #bodyAt = 0;
  #clusterEnd = 0;
  #time = 0;
  #inside = false;
  #steps = 0;
  /** Bytes that must be present before `next` can continue. */
  #missing = MAX_HEADER_BYTES;
  readonly #signal: AbortSignal;
  readonly #stop: ((clusterAt: number, blockAt: number) => boolean) | undefined;
  readonly #onTooLarge: ClusterWalkOptions["onTooLarge"];

  /** Call `locate()` first. */
  constructor(source: ByteSource, position: number, signal: AbortSignal, options: ClusterWalkOptions = {}) {
    const { stop, untilBytes = Infinity, lender = null, onTooLarge } = options;
    this.#stop = stop;
    this.#onTooLarge = onTooLarge;
    this.#signal = signal;
    this.#window = new ByteWindow(source, position, { chunkBytes: CHUNK_BYTES, untilBytes, signal, lender });
  }

  /**
   * The next block already in memory. "more": call `fill` first. "search": damage, call `search` first. "turn": call
   * `turn` first, since the walk has run for a while. null: at the end of the file, or where `stop` ended it.
   */
  next(): WalkedBlock | "more" | "search" | "turn" | null {
    const window = this.#window;
    for (;;) {
      if (++this.#steps > TURN_STEPS) {
        this.#steps = 0;
        return "turn";
      }
      if (!window.gather(1)) return window.atEnd ? null : "more";
      if (this.#inside && window.position >= this.#clusterEnd) this.#inside = false;
      const header = readHeader(window.bytes, window.at, window.bytes.length);
      if (header === "more") {
        const { available } = window;
        if (window.gather(MAX_HEADER_BYTES) || window.available > available) continue;
        return window.atEnd ? null : "more";
      }
      if (header === "damaged") return "search";
      const headerBytes = header.body - window.at;
      const size = header.sizeBytes;
      if (this.#inside && this.#clusterEnd === Infinity && SEGMENT_CHILDREN.has(header.id)) this.#inside = false;
      if (!this.#inside) {
        if (header.id === ID.CLUSTER) this.#enter(headerBytes, size);
        else if (
          size === null || (!SEGMENT_CHILDREN.has(header.id) && header.id !== ID.VOID && header.id !== ID.CRC32)
        ) {
          return "search";
        } else window.seek(window.position + headerBytes + size);
        continue;
      }
      if (size === null || !BLOCK_LEVEL.has(header.id)) return "search";
      if (window.position + headerBytes + size > this.#clusterEnd) return "search";
      const wanted = header.id === ID.SIMPLE_BLOCK || header.id === ID.BLOCK_GROUP;
      if ((!wanted && header.id !== ID.TIMESTAMP) || size > MAX_BLOCK_BYTES) {
        if (wanted) this.#onTooLarge?.(window.position);
        window.seek(window.position + headerBytes + size);
        continue;
      }
      if (wanted && this.#stop?.(this.#clusterAt, window.position - this.#bodyAt) === true) return null;
      if (window.available < headerBytes + size) {
        if (window.gather(headerBytes + size)) continue;
        this.#missing = headerBytes + size;
        return window.atEnd ? null : "more";
      }
      const blockAt = window.position - this.#bodyAt;
      const end = header.body + size;
      window.at = end;
      if (header.id === ID.TIMESTAMP) {
        if (size <= 8) this.#time = uint(window.bytes.subarray(header.body, end));
        continue;
      }
      const place = { clusterAt: this.#clusterAt, blockAt, elementBytes: headerBytes + size };
      const block = header.id === ID.SIMPLE_BLOCK
        ? this.#block(header.body, end, place, null, null, null)
        : this.#group(header.body, end, place);
      if (block !== null) return block;
    }
  }

  /** Where the walk is in the file. */
  get position(): number {
    return this.#window.position;
  }

  /** Gives others a turn if that is due. */
  async turn(): Promise<void> {
    await turnWhenDue(this.#signal);
  }

  /** Whether `fill` reads so little that it may run while others still work on the bytes read before. */
  get fillsLittle(): boolean {
    return this.#missing <= CHUNK_BYTES;
  }

  /** Reads on after "more". */
  async fill(): Promise<void> {
    const need = Math.max(this.#missing, this.#window.available + 1);
    this.#missing = MAX_HEADER_BYTES;
    await this.#window.need(need);
    await this.turn();
  }

  /**
   * Gives back the memory that the walk has left behind. Call it when nobody reads the earlier blocks any more, or
   * their users hold them.
   */
  giveBack(): void {
    this.#window.giveBack();
  }

  /** Gives back everything, as `giveBack`; the walk is over. */
  close(): void {
    this.#window.close();
  }

  /** After "search": continues at the next cluster, at least one byte further; false when there is none. */
  async search(): Promise<boolean> {
    const window = this.#window;
    this.#inside = false;
    window.at = Math.min(window.at + 1, window.bytes.length);
    return await this.locate();
  }

  /** Goes to the first cluster at or after the position; returns whether there is one. */
  async locate(): Promise<boolean> {
    const window = this.#window;
    this.#inside = false;
    for (;;) {
      await this.turn();
      await window.need(PROBE_BYTES);
      const { bytes } = window;
      for (let at = window.at;; at++) {
        at = bytes.indexOf(0x1f, at);
        if (at < 0) {
          window.at = bytes.length;
          break;
        }
        window.at = at;
        if (bytes.length - at < PROBE_BYTES && !window.atEnd) break;
        if (looksLikeCluster(bytes, at, bytes.length)) return true;
      }
      if (window.atEnd) return false;
    }
  }

  #enter(headerBytes: number, size: number | null): void {
    this.#clusterAt = this.#window.position;
    this.#bodyAt = this.#clusterAt + headerBytes;
    this.#clusterEnd = size === null ? Infinity : this.#bodyAt + size;
    this.#inside = true;
    this.#time = 0;
    this.#window.at += headerBytes;
  }

  #block(
    at: number,
    end: number,
    place: BlockPlace,
    keyframe: boolean | null,
    duration: number | null,
    beside: Uint8Array | null,
  ): WalkedBlock | null {
    const { bytes } = this.#window;
    const head = readBlockHead(bytes, at, end);
    if (head === null) return null;
    return {
      ...place,
      track: head.track,
      time: this.#time + head.relativeTime,
      keyframe: keyframe ?? (head.flags & 0x80) !== 0,
      duration,
      beside,
      flags: head.flags,
      bytes,
      body: head.body,
      end,
    };
  }

  #group(at: number, end: number, place: BlockPlace): WalkedBlock | null {
    const { bytes } = this.#window;
    let body = -1;
    let bodyEnd = 0;
    let keyframe = true;
    let duration: number | null = null;
    let beside: Uint8Array | null = null;
    const budget = { left: MAX_GROUP_ELEMENTS };
    for (const child of children(bytes.subarray(at, end), budget)) {
      if (child.id === ID.BLOCK_ADDITIONS && child.data.length <= MAX_BESIDE_BYTES) {
        beside ??= firstAddition(child.data, budget);
      }
      if (child.id === ID.REFERENCE_BLOCK) keyframe = false;
      if (child.id === ID.BLOCK_DURATION && child.data.length <= 8) duration = uint(child.data);
      if (child.id !== ID.BLOCK) continue;
      body = child.data.byteOffset - bytes.byteOffset;
      bodyEnd = body + child.data.length;
    }
    return body < 0 ? null : this.#block(body, bodyEnd, place, keyframe, duration, beside);
  }
}

/** The addition of number 1, the default: of WebVTT its settings, identifier and comments. */
function firstAddition(additions: Uint8Array, budget: ElementBudget): Uint8Array | null {
  for (const more of children(additions, budget)) {
    if (more.id !== ID.BLOCK_MORE) continue;
    let number = 1;
    let found: Uint8Array | null = null;
    for (const { id, data } of children(more.data, budget)) {
      if (id === ID.BLOCK_ADD_ID && data.length <= 8) number = uint(data);
      if (id === ID.BLOCK_ADDITIONAL) found = data;
    }
    if (number === 1 && found !== null) return found;
  }
  return null;
}
