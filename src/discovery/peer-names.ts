/** Looks up peers that are given by host name. The dial rule judges literal addresses: a name may lead elsewhere later. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import type { Ports, SocketAddress } from "../ports.ts";
import { canonicalHost } from "./addresses.ts";

/** Time limit for one name, ms. */
const RESOLVE_DEADLINE_MS = 5_000;

/** Addresses used per name. */
const MAX_ADDRESSES_PER_NAME = 4;

/** The literal addresses of `peer` on behalf of `holder`; none when there is no such name or the signal fires. */
export async function resolvePeer(
  { clock, network }: Pick<Ports, "clock" | "network">,
  { host, port }: SocketAddress,
  holder: string,
  signal: AbortSignal,
): Promise<SocketAddress[]> {
  const limit = deadline(clock, RESOLVE_DEADLINE_MS, signal);
  try {
    const found = await withSignal(network.resolve(host, { signal: limit.signal, holder }), limit.signal);
    const literals = found.slice(0, MAX_ADDRESSES_PER_NAME).map(canonicalHost).filter((literal) => literal !== null);
    return literals.map((literal) => ({ host: literal, port }));
  } catch {
    return [];
  } finally {
    limit.cancel();
  }
}
