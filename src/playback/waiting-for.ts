/** What a start waits for. */
import type { Swarm } from "../swarm/types.ts";

/** Why nothing can be played yet, in a word. */
export function waitingFor(swarm: Swarm): "no_peers" | "slow_peers" | "no_data" {
  const { peers, downloadedBytes, downloadBytesPerSecond } = swarm.status();
  if (peers === 0) return "no_peers";
  return downloadedBytes > 0 || downloadBytesPerSecond > 0 ? "slow_peers" : "no_data";
}
