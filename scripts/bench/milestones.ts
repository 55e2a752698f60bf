/** When the start of a stream reached each of its stages: shows where the time to the first picture goes. */
import { TorrentSwarm } from "../../src/swarm/torrent/torrent-swarm.ts";
import type { SwarmManager } from "../../src/swarm/types.ts";

/** Stages of a start, in their usual order. */
export const STAGES = [
  "peer named",
  "first greeting",
  "metadata",
  "first block",
  "piece 1",
  "piece 2",
  "piece 4",
  "URL",
];

/** How often the swarm is looked at, ms. */
const LOOK_MS = 5;
/** Looking ends this long after the start, ms. */
const GIVE_UP_MS = 30_000;

/** Calls `say` with each stage's name and the time since this call, ms, for the only swarm of `swarms`. */
export function watchStart(swarms: Pick<SwarmManager, "list">, say: (stage: string, ms: number) => void): void {
  const beganMs = performance.now();
  const left = new Set(STAGES.filter((stage) => stage !== "URL"));
  const timer = setInterval(() => {
    const ms = performance.now() - beganMs;
    const swarm = swarms.list()[0];
    if (swarm instanceof TorrentSwarm) {
      const { peers, havePieces, downloadBytesPerSecond } = swarm.status();
      const reached: Record<string, boolean> = {
        "peer named": swarm.peers.book.size > 0,
        "first greeting": peers > 0,
        "metadata": swarm.metainfo !== null,
        "first block": downloadBytesPerSecond > 0,
        "piece 1": havePieces >= 1,
        "piece 2": havePieces >= 2,
        "piece 4": havePieces >= 4,
      };
      for (const stage of [...left]) {
        if (!reached[stage]) continue;
        left.delete(stage);
        say(stage, ms);
      }
    }
    if (left.size === 0 || ms > GIVE_UP_MS) clearInterval(timer);
  }, LOOK_MS);
}
