/** Walks the blocks of a stretch of the file, for facts that the head does not give. */
import type { ByteSource } from "../../../bytes/source.ts";
import { ClusterWalk, type WalkedBlock } from "./cluster-walk.ts";

/** Shows `visit` the blocks from the first cluster at or after `from` on, until it returns false. Times are in the file's units. */
export async function walkBlocks(
  source: ByteSource,
  from: number,
  signal: AbortSignal,
  visit: (block: WalkedBlock) => boolean,
): Promise<void> {
  const walk = new ClusterWalk(source, from, signal);
  if (!await walk.locate()) return;
  for (;;) {
    const block = walk.next();
    if (block === null) return;
    if (block === "turn") await walk.turn();
    else if (block === "more") await walk.fill();
    else if (block === "search") {
      if (!await walk.search()) return;
    } else if (!visit(block)) return;
  }
}
