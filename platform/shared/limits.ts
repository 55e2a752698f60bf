/** Bounds that all platforms share, so that the engine behaves the same on each. */

/** `TcpConnection.write()` returns false above this many queued bytes (the promise of `src/ports.ts`). */
export const WRITE_HIGH_BYTES = 256 * 1024;

/** `drain` is called once fewer bytes than this are queued (the promise of `src/ports.ts`). */
export const WRITE_LOW_BYTES = 64 * 1024;

/** Largest receive buffer: larger ones gave no more throughput on loopback, smaller ones cost 10–30 %. */
export const RECEIVE_BUFFER_BYTES = 256 * 1024;

/** Bytes handed to the kernel in one write where the runtime has no gathering write: 8 blocks and their headers. */
export const SEND_BATCH_BYTES = 132 * 1024;
