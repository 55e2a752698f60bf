/** Transport files for tests, built by hand so that they can be wrong in any way. */
import { encodeBencode } from "../../src/bytes/bencode.ts";

/** `info` of one 40,000 byte file, with `changes`; undefined removes a key. */
export function infoWith(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { length: 40_000, name: "clip.mp4", "piece length": 16384, pieces: new Uint8Array(60).fill(7), ...changes };
}

/** A transport file around `infoWith(changes)`. */
export function fileWith(changes: Record<string, unknown> = {}, outer: Record<string, unknown> = {}): Uint8Array {
  return encodeBencode({ info: infoWith(changes), ...outer });
}

/** A small seeded generator (mulberry32), in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
