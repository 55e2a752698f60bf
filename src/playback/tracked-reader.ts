/** A reader that reports its player's position. */
import type { ChunkBuffers } from "../bytes/chunk-buffers.ts";
import type { ShareHolder } from "../bytes/shares.ts";
import type { SwarmReader } from "../swarm/types.ts";
import type { OutputRun } from "./shared-output.ts";

/** A swarm's reader with the place of its newest read. */
export interface TrackedReader extends SwarmReader {
  /** Byte of the file at which the newest read began; null before the first. */
  readonly positionBytes: number | null;
}

/** `reader`, read for `holder`, with `onRead` called as each read begins. It returns data in memory of `buffers` and takes that back. */
export function trackReader(
  reader: SwarmReader,
  buffers: ChunkBuffers,
  onRead: (offset: number, end: number) => void,
  holder: ShareHolder,
): TrackedReader {
  let position: number | null = null;
  const allocate = (sizeBytes: number) => buffers.acquire(sizeBytes);
  return {
    fileIndex: reader.fileIndex,
    holder,
    sizeBytes: reader.sizeBytes,
    get positionBytes() {
      return position;
    },
    setBitrate: (bytesPerSecond) => reader.setBitrate(bytesPerSecond),
    setReadAhead: (bytes) => reader.setReadAhead(bytes),
    availableFrom: (offset, maxBytes) => reader.availableFrom(offset, maxBytes),
    pieceEnd: (offset) => reader.pieceEnd(offset),
    isWaiting: () => reader.isWaiting(),
    stallReason: () => reader.stallReason(),
    close: () => reader.close(),
    read(offset, length, options) {
      position = offset;
      onRead(offset, offset + length);
      return reader.read(offset, length, { ...options, allocate });
    },
    release: (bytes) => buffers.release(bytes),
    hold: (bytes) => buffers.hold(bytes),
  };
}

/** A run of `chunks`, which are made from what `reader` reads. */
export function runOf(chunks: AsyncIterable<Uint8Array>, reader: TrackedReader): OutputRun {
  return {
    chunks,
    isWaiting: () => reader.isWaiting(),
    stallReason: () => reader.stallReason(),
    get positionBytes() {
      return reader.positionBytes;
    },
    close: () => reader.close(),
  };
}
