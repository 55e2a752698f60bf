/** The newest minutes of a broadcast as a row of transport packets, numbered from 0 and never renumbered. */
import type { ByteSource, ReadOptions } from "../../bytes/source.ts";
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { concatBytes } from "../../bytes/hex.ts";
import { abortError, hasCode, MillraceError } from "../../errors.ts";
import type { DiskPlace, WindowFiles } from "./window-files.ts";

/** Longest time that one chunk is assumed to last when the time of the next is unknown or far, ms. */
const MAX_CHUNK_MS = 2000;

/**
 * Newer data stays in memory, ms: nearly everything that is read is newer, and the swarm holds the same bytes for its
 * usual window of a minute anyway.
 */
const IN_MEMORY_MS = 90_000;

/** Most chunks kept: two hours of seven per second. A hostile broadcaster could send chunks of one packet each. */
const MAX_CHUNKS = 50_000;

/** Packets that arrived together: a piece of the broadcast. */
interface Chunk {
  readonly firstPacket: number;
  readonly packetCount: number;
  /** Capture time of its first packet, Unix ms. */
  readonly captureMs: number;
  /** The bytes, cut anywhere; shared with whoever received them. null: on disk. */
  parts: readonly Uint8Array[] | null;
  /** null: not on disk, or not yet. */
  place: DiskPlace | null;
}

/** How much a window keeps. */
export interface WindowLimits {
  readonly windowMs: number;
  /** Bytes in memory. */
  readonly maxBytes: number;
  /** Bytes on disk; without `files` nothing is there. */
  readonly maxDiskBytes?: number;
}

/**
 * Keeps what its limits allow, and drops older data. Chunks are held, not copied; with `files` older ones move to disk.
 */
export class PacketWindow implements ByteSource {
  /** A broadcast has no end: positions are packet number × 188. */
  readonly sizeBytes = Number.MAX_SAFE_INTEGER;
  readonly #limits: WindowLimits;
  readonly #files: WindowFiles | null;
  readonly #failed: (error: unknown) => void;
  #chunks: Chunk[] = [];
  #memoryBytes = 0;
  #diskBytes = 0;
  /** The first packets of chunks before are on disk or on the way there, or stay in memory because the disk failed. */
  #movedTo = 0;
  #isMoving = false;
  /** First packet kept. */
  base = 0;
  /** Packets so far: number of the next one. */
  end = 0;

  /** `failed` takes a fault of ours in moving data to the disk; the rest then stays in memory. */
  constructor(limits: WindowLimits, files: WindowFiles | null = null, failed: (error: unknown) => void = () => {}) {
    this.#limits = limits;
    this.#files = files;
    this.#failed = failed;
  }

  /** Bytes kept in memory. */
  get usedBytes(): number {
    return this.#memoryBytes;
  }

  /** Bytes kept on disk. */
  get usedDiskBytes(): number {
    return this.#diskBytes;
  }

  /** Capture time of the oldest packet kept, Unix ms; null when empty. */
  get oldestMs(): number | null {
    return this.#chunks[0]?.captureMs ?? null;
  }

  /** Capture time of the newest chunk, Unix ms; null when empty. */
  get newestMs(): number | null {
    return this.#chunks.at(-1)?.captureMs ?? null;
  }

  /** Takes the next chunk, whole packets in `parts`. */
  append(parts: readonly Uint8Array[], captureMs: number): void {
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    const packetCount = Math.floor(bytes / PACKET_BYTES);
    if (packetCount === 0) return;
    this.#chunks.push({ firstPacket: this.end, packetCount, captureMs, parts, place: null });
    this.end += packetCount;
    this.#memoryBytes += packetCount * PACKET_BYTES;
    this.#trim(captureMs);
    if (this.#files !== null && !this.#isMoving) this.#move(this.#files).catch(this.#failed);
  }

  /** Drops everything; resolves when the disk is clean. */
  async close(): Promise<void> {
    this.#chunks = [];
    this.base = this.end;
    await this.#files?.close();
  }

  /** When `packet` was captured, Unix ms, to the part of a chunk; the edges for those outside. 0 when empty. */
  timeOf(packet: number): number {
    const index = this.#indexOf(Math.max(this.base, packet));
    const chunk = this.#chunks[index];
    if (chunk === undefined) return this.newestMs ?? 0;
    const next = this.#chunks[index + 1];
    const lasts = next === undefined ? 0 : Math.min(MAX_CHUNK_MS, Math.max(0, next.captureMs - chunk.captureMs));
    const share = Math.max(0, packet - chunk.firstPacket) / chunk.packetCount;
    return chunk.captureMs + Math.round(share * lasts);
  }

  /** Chunks that hold packets of `[from, to)`. */
  chunksBetween(from: number, to: number): number {
    if (to <= from || this.#chunks.length === 0) return 0;
    return Math.min(this.#chunks.length - 1, this.#indexOf(to - 1)) - this.#indexOf(Math.max(from, this.base)) + 1;
  }

  /** Packets `[first, first + count)`, a copy. Rejects with `not_found` when some are no longer or not yet there. */
  async packets(first: number, count: number): Promise<Uint8Array> {
    const parts: (Uint8Array | Promise<Uint8Array>)[] = [];
    const outside = () => new MillraceError("not_found", "this part of the broadcast is outside the window");
    if (first < this.base || first + count > this.end) throw outside();
    let left = count;
    for (let index = this.#indexOf(first); left > 0; index++) {
      const chunk = this.#chunks[index]!;
      const skip = Math.max(0, first - chunk.firstPacket);
      const take = Math.min(left, chunk.packetCount - skip);
      this.#readChunk(chunk, skip * PACKET_BYTES, take * PACKET_BYTES, parts);
      left -= take;
    }
    try {
      return concatBytes(await Promise.all(parts));
    } catch (error) {
      // It was dropped while it was being read.
      throw first < this.base && !hasCode(error, "not_found") ? outside() : error;
    }
  }

  async read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    if (options.signal.aborted) throw abortError(options.signal);
    const first = Math.floor(offset / PACKET_BYTES);
    const last = Math.ceil((offset + length) / PACKET_BYTES);
    const skip = offset - first * PACKET_BYTES;
    return (await this.packets(first, last - first)).subarray(skip, skip + length);
  }

  /** Appends the bytes `[offset, offset + length)` of `chunk` to `out`, in one or more parts. */
  #readChunk(chunk: Chunk, offset: number, length: number, out: (Uint8Array | Promise<Uint8Array>)[]): void {
    if (chunk.parts === null) return void out.push(this.#files!.read(chunk.place!, offset, length));
    let skip = offset;
    let left = length;
    for (const part of chunk.parts) {
      if (left === 0) return;
      if (skip < part.length) {
        const take = part.subarray(skip, skip + left);
        left -= take.length;
        out.push(take);
      }
      skip = Math.max(0, skip - part.length);
    }
  }

  /** Drops what is too old, and the oldest while there is too much. */
  #trim(newestMs: number): void {
    const { windowMs, maxBytes, maxDiskBytes = 0 } = this.#limits;
    let old = 0;
    while (old < this.#chunks.length - 1) {
      const chunk = this.#chunks[old]!;
      const fits = this.#memoryBytes <= maxBytes && (this.#diskBytes <= maxDiskBytes || maxDiskBytes === 0) &&
        this.#chunks.length - old <= MAX_CHUNKS;
      if (chunk.captureMs >= newestMs - windowMs && fits) break;
      if (chunk.parts === null) this.#diskBytes -= chunk.packetCount * PACKET_BYTES;
      else this.#memoryBytes -= chunk.packetCount * PACKET_BYTES;
      if (chunk.place !== null) this.#files!.release(chunk.place);
      old++;
    }
    if (old > 0) this.#chunks.splice(0, old);
    this.base = this.#chunks[0]!.firstPacket;
  }

  /**
   * Sends old data to the disk; it leaves memory once it is there. One chunk after the other: each is copied for it,
   * and copies must not pile up if a disk hangs.
   */
  async #move(files: WindowFiles): Promise<void> {
    this.#isMoving = true;
    for (;;) {
      const chunk = this.#chunks[this.#indexOf(Math.max(this.#movedTo, this.base))];
      if (chunk === undefined || chunk.captureMs >= this.newestMs! - IN_MEMORY_MS) break;
      this.#movedTo = chunk.firstPacket + chunk.packetCount;
      await this.#store(chunk, files);
    }
    this.#isMoving = false;
  }

  async #store(chunk: Chunk, files: WindowFiles): Promise<void> {
    const place = await files.write(concatBytes(chunk.parts!));
    if (place === null) return;
    // It may have been dropped in the meantime.
    if (chunk.firstPacket < this.base) return files.release(place);
    const bytes = chunk.packetCount * PACKET_BYTES;
    chunk.place = place;
    chunk.parts = null;
    this.#memoryBytes -= bytes;
    this.#diskBytes += bytes;
  }

  /** Index of the chunk that holds `packet`; the number of chunks when it is beyond them. */
  #indexOf(packet: number): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const chunk = this.#chunks[middle]!;
      if (chunk.firstPacket + chunk.packetCount <= packet) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
