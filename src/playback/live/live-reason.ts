/** Why a broadcast does not start, in words. */
import type { LiveStream } from "./live-stream.ts";

/** Why nothing of a broadcast arrives. */
export function liveReason({ source }: LiveStream): string {
  if (source.channel !== undefined) return source.channel.reason ?? "the source sends nothing";
  if (source.status().peers === 0) return "no_peers";
  const { joined, behindMs } = source.supply;
  if (joined) return "no_data";
  if (behindMs === null) return "not on the air: no peer has anything of it";
  const age = `${Math.round(behindMs / 1000)} s old by this machine's clock`;
  return `not on the air: the newest piece that any peer has is ${age}, and no newer one comes`;
}
