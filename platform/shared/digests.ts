/** SHA-1 of pieces and SHA-256 of live blocks, at the least cost. */
import { createHash } from "node:crypto";
import type { Digest } from "../../src/ports.ts";

/**
 * Up to this size data is hashed on the caller's thread. Web Crypto copies its input and hands it to another thread, which
 * takes 0.4 to 0.6 s more processor time per GiB of pieces, and 9 s per GiB of blocks of 16 KiB. Most of it is spent on the
 * caller's thread, which could have hashed meanwhile. Hashing more here would hold up everything else too long: 4 MiB take
 * 2 to 4 ms.
 */
const MAX_INLINE_BYTES = 4 * 1024 * 1024;

/** See `Ports.sha1`. */
export const sha1: Digest = (data) => digest("sha1", "SHA-1", data);

/** See `Ports.sha256`. */
export const sha256: Digest = (data) => digest("sha256", "SHA-256", data);

async function digest(name: string, webName: string, data: Uint8Array): Promise<Uint8Array> {
  if (data.length <= MAX_INLINE_BYTES) return new Uint8Array(createHash(name).update(data).digest());
  return new Uint8Array(await crypto.subtle.digest(webName, data as Uint8Array<ArrayBuffer>));
}
