/** Transport files for tests, built by hand so that they can be wrong in any way. */
import { encodeBencode } from "../../src/bytes/bencode.ts";
export { seeded } from "../support/random.ts";

/** `info` of one 40,000 byte file, with `changes`; undefined removes a key. */
export function infoWith(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { length: 40_000, name: "clip.mp4", "piece length": 16384, pieces: new Uint8Array(60).fill(7), ...changes };
}

/** A transport file around `infoWith(changes)`. */
export function fileWith(changes: Record<string, unknown> = {}, outer: Record<string, unknown> = {}): Uint8Array {
  return encodeBencode({ info: infoWith(changes), ...outer });
}
