/** What is told of a broadcast that does not start. */
import type { LiveStream } from "./live-stream.ts";

/** Why nothing of a broadcast arrives. */
export function liveReason({ source }: LiveStream): string {
  if (source.status().peers === 0) return "no_peers";
  return source.node.joined ? "no_data" : "not on the air: no peer has anything of the last 30 s";
}
