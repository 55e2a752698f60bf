/** Reads many small pieces of a source, in the order they are needed, as few large reads, one batch ahead. */
import type { ByteSource } from "../../bytes/source.ts";

/** A piece of the source. */
export interface Extent {
  readonly offset: number;
  readonly sizeBytes: number;
}

/** Bytes of consecutive extents: extent `i` of the batch is `data[i]` from `from[i]`. */
export interface ExtentBatch {
  readonly data: readonly Uint8Array[];
  readonly from: readonly number[];
  /** The reads that hold it, for `ByteSource.release`. */
  readonly reads: readonly Uint8Array[];
}

/**
 * The first batch holds one picture or a little sound. More could reach into the next piece of a torrent, and the reader would
 * wait for both. Each next batch doubles up to the limit. After a batch that has to wait for the swarm the size starts again
 * here, so that arrived bytes leave early.
 */
const FIRST_BATCH_BYTES = 16 * 1024;
const MAX_BATCH_BYTES = 512 * 1024;
/** Bounds the requests of one batch when access units are tiny. */
const MAX_BATCH_EXTENTS = 2048;
/** Gaps between two extents up to this size are cheaper to read than to skip, bytes. */
const MAX_GAP_BYTES = 64 * 1024;
/** A read is no longer than this unless one extent is. */
const MAX_READ_BYTES = 512 * 1024;

function nextBatch(extents: Iterator<Extent>, limitBytes: number): Extent[] {
  const batch: Extent[] = [];
  for (let bytes = 0; bytes < limitBytes && batch.length < MAX_BATCH_EXTENTS;) {
    const next = extents.next();
    if (next.done === true) break;
    batch.push(next.value);
    bytes += next.value.sizeBytes;
  }
  return batch;
}

/** A batch that is being read. */
interface Reading {
  readonly result: Promise<ExtentBatch>;
  /** All its bytes have arrived: it does not wait for the swarm. */
  readonly isHere: boolean;
}

function readBatch(source: ByteSource, batch: readonly Extent[], signal: AbortSignal): Reading {
  const order = batch.map((_, i) => i);
  order.sort((a, b) => batch[a]!.offset - batch[b]!.offset);
  const data: Uint8Array[] = new Array(batch.length);
  const from: number[] = new Array(batch.length);
  const reads: Promise<Uint8Array>[] = [];
  let isHere = true;
  for (let first = 0; first < order.length;) {
    const start = batch[order[first]!]!.offset;
    let end = start;
    let last = first;
    for (; last < order.length; last++) {
      const extent = batch[order[last]!]!;
      const newEnd = Math.max(end, extent.offset + extent.sizeBytes);
      if (last > first && (extent.offset - end > MAX_GAP_BYTES || newEnd - start > MAX_READ_BYTES)) break;
      end = newEnd;
    }
    const members = order.slice(first, last);
    isHere &&= (source.availableFrom?.(start, end - start) ?? Infinity) >= end - start;
    reads.push(
      source.read(start, end - start, { signal }).then((bytes) => {
        for (const i of members) {
          data[i] = bytes;
          from[i] = batch[i]!.offset - start;
        }
        return bytes;
      }),
    );
    first = last;
  }
  return { result: Promise.all(reads).then((all) => ({ data, from, reads: all })), isHere };
}

/** Batches for `extents` in their order. The next batch is being read while the consumer works on one. */
export async function* readExtents(
  source: ByteSource,
  extents: Iterable<Extent>,
  signal: AbortSignal,
): AsyncGenerator<ExtentBatch> {
  const iterator = extents[Symbol.iterator]();
  let limitBytes = FIRST_BATCH_BYTES;
  const start = (): Promise<ExtentBatch> | null => {
    const batch = nextBatch(iterator, limitBytes);
    if (batch.length === 0) return null;
    const { result, isHere } = readBatch(source, batch, signal);
    limitBytes = isHere ? Math.min(MAX_BATCH_BYTES, limitBytes * 2) : FIRST_BATCH_BYTES;
    // Handled where it is awaited; a consumer that left early must not turn it into an unhandled rejection.
    result.catch(() => {});
    return result;
  };
  for (let current = start(); current !== null;) {
    const batch = await current;
    current = start();
    yield batch;
  }
}
