/** Reads the segments of a source before their time, within a budget that all sources of the engine share. */
import { deferred } from "../bytes/deferred.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";

/** Most bytes read ahead by one source: ten seconds at 10 Mb/s. Of larger segments the rest waits at the server. */
const AHEAD_BYTES = 12 * 1024 * 1024;
/** The same for all sources together. One that has nothing read ahead may always hold one chunk. */
const ALL_AHEAD_BYTES = 36 * 1024 * 1024;
/** What an event takes besides its bytes: a server may send a million chunks of one byte. */
const EVENT_BYTES = 512;

/** Bytes held by all sources. There is one process, so there is one budget. */
let allBytes = 0;

/** Marks the beginning of a segment. */
export const SEGMENT_START = Symbol("segment");

/** What is read ahead. */
export type AheadItem = LiveInputEvent | typeof SEGMENT_START;

/** `items` without the marks, read ahead: while one segment is used the next one is read, and none after it. */
export async function* readAhead(items: AsyncGenerator<AheadItem, void>): AsyncGenerator<LiveInputEvent, void> {
  const queue: AheadItem[] = [];
  let heldBytes = 0;
  let isOver = false;
  let isLeft = false;
  let failure: { readonly error: unknown } | null = null;
  let changed = deferred<void>();
  const change = () => {
    changed.resolve();
    changed = deferred();
  };
  const hold = (bytes: number) => {
    heldBytes += bytes;
    allBytes += bytes;
    change();
  };
  const mayHold = (item: AheadItem) => {
    if (item === SEGMENT_START) return !queue.includes(SEGMENT_START);
    const bytes = sizeOf(item);
    return heldBytes === 0 || heldBytes + bytes <= AHEAD_BYTES && allBytes + bytes <= ALL_AHEAD_BYTES;
  };
  const read = async () => {
    try {
      for await (const item of items) {
        while (!isLeft && !mayHold(item)) await changed.promise;
        if (isLeft) return;
        queue.push(item);
        hold(sizeOf(item));
      }
    } catch (error) {
      failure = { error };
    } finally {
      isOver = true;
      change();
    }
  };
  void read();
  try {
    for (;;) {
      while (queue.length === 0) {
        if (failure !== null) throw (failure as { readonly error: unknown }).error;
        if (isOver) return;
        await changed.promise;
      }
      const item = queue.shift()!;
      hold(-sizeOf(item));
      if (item !== SEGMENT_START) yield item;
    }
  } finally {
    isLeft = true;
    queue.length = 0;
    hold(-heldBytes);
    // Not awaited: it may wait for a server that hangs.
    void items.return().catch(() => {});
  }
}

function sizeOf(item: AheadItem): number {
  if (item === SEGMENT_START) return 0;
  return EVENT_BYTES + (item.kind === "data" ? item.bytes.length : 0);
}
