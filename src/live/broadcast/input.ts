/** What a broadcaster reads: the interface between the sources and the publisher. */

/** One event of a source. */
export type LiveInputEvent =
  /**
   * Bytes of an MPEG transport stream (ISO/IEC 13818-1), in order, in chunks of any size that need not start at a packet.
   * They belong to the receiver.
   */
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  /**
   * The source was lost or jumped: the following data does not continue the data before. Never twice in a row without
   * data between. `reason` is one line for the log, without credentials.
   */
  | { readonly kind: "lost"; readonly reason: string };

/**
 * A source of a broadcast, read once. It paces itself: data comes when it is due, and no faster than it is taken. Ends
 * when the source has ended for good; drop-outs are reported as `lost` and repaired by the source itself. Rejects with a
 * `MillraceError` only for what no later attempt can repair (an unreadable file, a format that is no transport stream).
 * Leaving the loop (`return()`) releases every connection, file and process.
 */
export type LiveInput = AsyncIterable<LiveInputEvent>;
