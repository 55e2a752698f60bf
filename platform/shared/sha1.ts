/** SHA-1 of pieces, at the least cost. */
import { createHash } from "node:crypto";
import type { Sha1 } from "../../src/ports.ts";

/**
 * Up to this size pieces are hashed on the caller's thread. Web Crypto copies its input and hands it to another thread, which
 * takes 0.4 to 0.6 s more processor time per GiB, most of it on the caller's thread, which could have hashed meanwhile.
 * Hashing larger pieces here would hold up everything else too long: 4 MiB take 2 to 4 ms.
 */
const MAX_INLINE_BYTES = 4 * 1024 * 1024;

/** See `Ports.sha1`. */
export const sha1: Sha1 = async (data) => {
  if (data.length <= MAX_INLINE_BYTES) return new Uint8Array(createHash("sha1").update(data).digest());
  return new Uint8Array(await crypto.subtle.digest("SHA-1", data as Uint8Array<ArrayBuffer>));
};
