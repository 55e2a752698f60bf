/** Names swarms that announced themselves to our node (BEP 51), for programs that survey the DHT. */
import { fromHex } from "../bytes/hex.ts";
import type { LibraryContact } from "./dht-library.ts";

/** Infohashes of a reply. With the nodes of both DHTs it has less than 1000 bytes. */
const SAMPLES = 20;

/** How long a reply stays the same, s: choosing takes work, and strangers ask. */
const INTERVAL_S = 60;

/** The part of the library's store of peers that is read: records by infohash, in hexadecimal, in two generations. */
interface PeerStore {
  readonly _fresh: { readonly records: ReadonlyMap<string, unknown> };
  readonly _stale: { readonly records: ReadonlyMap<string, unknown> };
}

/** Makes `dht`, a node of the library, reply to `sample_infohashes`. Only its pinned version has these members. */
// deno-lint-ignore no-explicit-any -- the library ships no types
export function answerSamples(dht: any, nowMs: () => number): void {
  const { _peers: peers, _rpc: rpc, nodes } = dht;
  const onQuery = dht._onquery.bind(dht);
  let chosen: { readonly untilMs: number; readonly num: number; readonly samples: Uint8Array } | null = null;
  dht._onquery = (query: { q?: unknown; a?: { target?: Uint8Array } }, peer: unknown) => {
    if (String(query.q) !== "sample_infohashes" || !(query.a?.target instanceof Uint8Array)) {
      return onQuery(query, peer);
    }
    if (chosen === null || chosen.untilMs <= nowMs()) {
      chosen = { untilMs: nowMs() + 1000 * INTERVAL_S, ...choose(peers) };
    }
    const { num, samples } = chosen;
    const near: LibraryContact[] = nodes.closest(query.a.target);
    rpc.response(peer, query, { id: rpc.id, interval: INTERVAL_S, num, samples }, near);
  };
}

function choose({ _fresh, _stale }: PeerStore): { num: number; samples: Uint8Array } {
  const known = [...new Set([..._fresh.records.keys(), ..._stale.records.keys()])].filter((key) => key.length === 40);
  const num = known.length;
  const samples = new Uint8Array(20 * Math.min(SAMPLES, num));
  for (let at = 0; at < samples.length; at += 20) {
    samples.set(fromHex(known.splice(Math.floor(Math.random() * known.length), 1)[0]!), at);
  }
  return { num, samples };
}
