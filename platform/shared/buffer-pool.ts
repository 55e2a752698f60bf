/** Shares send buffers between connections: a connection holds one only while a write is under way. */
import { SEND_BATCH_BYTES } from "./limits.ts";

/** Buffers kept for reuse at most (2 MiB): more connections than this rarely write at the same instant. */
const KEPT_BUFFERS = 16;

const free: Uint8Array<ArrayBuffer>[] = [];

/** A buffer of `SEND_BATCH_BYTES`, contents undefined. */
export function acquireSendBuffer(): Uint8Array<ArrayBuffer> {
  return free.pop() ?? new Uint8Array(SEND_BATCH_BYTES);
}

/** Gives back what `acquireSendBuffer` returned. */
export function releaseSendBuffer(buffer: Uint8Array<ArrayBuffer>): void {
  if (free.length < KEPT_BUFFERS) free.push(buffer);
}
