/** Distinguishes a transport stream from anything else before any of it is sent. */
import { concatBytes } from "../bytes/hex.ts";
import { PACKET_BYTES } from "../bytes/ts/packet.ts";
import { findPackets, PLAIN_STRIDE } from "../bytes/ts/sync.ts";

/** Length that is examined: 20 packets. */
export const HEAD_BYTES = 20 * PACKET_BYTES;
/** True when `head` holds a row of transport packets, wherever it begins. */
export function isTransportStream(head: Uint8Array): boolean {
  return findPackets(head, PLAIN_STRIDE) !== null;
}

/**
 * True for the first bytes of an HLS playlist (RFC 8216, 4.1), with or without a byte order mark; some servers leave out the
 * first line, or put empty ones before it.
 */
export function isPlaylist(head: Uint8Array): boolean {
  return /^#EXT(?:M3U|-X-)/.test(new TextDecoder().decode(head.subarray(0, 64)).trimStart());
}

/** True for the first bytes of a gzip file (RFC 1952): some servers do not say that a playlist is packed. */
export function isPacked(head: Uint8Array): boolean {
  return head[0] === 0x1f && head[1] === 0x8b;
}

/**
 * Passes `chunks` on once their first `HEAD_BYTES`, or all of less, were examined: `check` throws for a format that
 * must not be sent.
 */
export async function* checkedHead(
  chunks: AsyncIterable<Uint8Array>,
  check: (head: Uint8Array) => void,
): AsyncGenerator<Uint8Array, void> {
  let held: Uint8Array[] | null = [];
  let heldBytes = 0;
  for await (const chunk of chunks) {
    if (held === null) {
      yield chunk;
      continue;
    }
    held.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes < HEAD_BYTES) continue;
    const head = concatBytes(held);
    held = null;
    check(head);
    yield head;
  }
  if (held === null || heldBytes === 0) return;
  const head = concatBytes(held);
  check(head);
  yield head;
}
