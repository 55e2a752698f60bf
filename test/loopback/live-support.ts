/** What the live loopback tests share. */
import { assertEquals } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import type { LiveSwarm } from "../../src/live/swarm/live-swarm.ts";
import type { Viewer } from "../live/live-lab.ts";

/** Bytes of a piece as the broadcaster has it. */
function sent(source: LiveSwarm, seq: number): Uint8Array {
  return concatBytes(source.node.window.get(seq)!.blocks as Uint8Array[]);
}

/** The reader got its pieces without a gap, each as it was sent. */
export function assertIdentical(viewer: Viewer, source: LiveSwarm): void {
  const numbers = [...viewer.got.keys()];
  assertEquals(numbers, numbers.map((_, i) => numbers[0]! + i));
  for (const [seq, bytes] of viewer.got) assertEquals(bytes, sent(source, seq));
  assertEquals(viewer.feed.skippedPieces, 0);
}
