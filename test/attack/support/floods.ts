/** Control messages that a peer may send without end: none is against the protocol by itself. */
import { extended, message } from "./peers.ts";

/**
 * What a flooding peer sends again and again, by name; for a torrent of `pieceCount` pieces. The engine offers ut_metadata,
 * ut_pex and lt_donthave as extensions 1, 2 and 3.
 */
export function floods(pieceCount: number): Record<string, Uint8Array> {
  const bitfieldBytes = Math.ceil(pieceCount / 8);
  const full = new Uint8Array(bitfieldBytes).fill(0xff);
  if (pieceCount % 8 !== 0) full[bitfieldBytes - 1] = 0xff << (8 - pieceCount % 8);
  const pieces = Array.from({ length: 100 }, (_, i) => i % pieceCount);
  const manyIds = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`ext${i}`, 1]));
  const added = crypto.getRandomValues(new Uint8Array(300));
  return {
    "choke and unchoke": join(message(1), message(0)),
    "have": join(...pieces.map((piece) => message(4, piece))),
    "interested and not": join(message(2), message(3)),
    "bitfield": join(message(5, full), message(5, new Uint8Array(bitfieldBytes))),
    "extended handshake": extended(0, { m: { ut_metadata: 3, ut_pex: 1 }, reqq: 250 }),
    "extended handshake of 1500 names": extended(0, { m: manyIds, p: 6881 }),
    "pex": join(extended(0, { m: { ut_pex: 1 } }), extended(2, { added })),
    "metadata request": join(
      extended(0, { m: { ut_metadata: 3 } }),
      ...pieces.map(() => extended(1, { msg_type: 0, piece: 0 })),
    ),
    "cancel": message(8, 0, 0, 16_384),
    "dht port": message(9, new Uint8Array([26, 225])),
    "request": join(...pieces.map((piece) => message(6, piece, 0, 16_384))),
    "keep-alive": new Uint8Array(4_000),
    "allowed fast": join(...pieces.map((piece) => message(17, piece))),
    "have all and none": join(message(14), message(15)),
    "lost and had": join(
      extended(0, { m: { lt_donthave: 7 } }),
      message(20, new Uint8Array([3, 0, 0, 0, 0])),
      message(4, 0),
    ),
    "reject": message(16, 0, 0, 16_384),
    "unknown message": message(77, new Uint8Array(1_000)),
    "unasked block": message(7, 0, 0, new Uint8Array(16_384)),
  };
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
