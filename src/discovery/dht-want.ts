/** `want` (BEP 32): one reply names nodes of both DHTs. */
import type { SocketAddress } from "../ports.ts";
import { encodeNodes, type Family, namedNodes, WIRE } from "./dht-contacts.ts";
import type { Asked, LibraryContact, LibraryReply } from "./dht-library.ts";

/** Queries whose replies name nodes. */
const NAMING: ReadonlySet<string> = new Set(["find_node", "get_peers", "get"]);

/** The other of the two DHTs. */
export interface OtherFamily {
  /** Its nodes nearest to `target`. */
  nearest(family: Family, target: Uint8Array): readonly LibraryContact[];
  /** A reply named a node of it. */
  named(address: SocketAddress): void;
}

/**
 * Names nodes in replies of `dht`, a node of `family`: of both DHTs where the query wants that (`want`). With `both`, its own
 * queries want both, too.
 */
// deno-lint-ignore no-explicit-any -- the library ships no types
export function nameNodes(dht: any, family: Family, both: boolean, other: OtherFamily): void {
  const { _rpc: rpc } = dht;
  const respond = rpc.response.bind(rpc);
  rpc.response = (
    peer: unknown,
    query: { a: { want?: unknown; target?: Uint8Array; info_hash?: Uint8Array } },
    response: Record<string, unknown>,
    nodes: readonly LibraryContact[] | undefined,
    sent: unknown,
  ) => {
    const target = query.a?.target ?? query.a?.info_hash;
    for (const wanted of nodes === undefined ? [] : wantedOf(query.a.want, family)) {
      const named = wanted === family ? nodes! : other.nearest(wanted, target!);
      response[WIRE[wanted].field] = encodeNodes(named);
    }
    respond(peer, query, response, undefined, sent);
  };
  if (!both) return;
  const ask = rpc.socket.query.bind(rpc.socket);
  rpc.socket.query = (to: unknown, message: { q: string; a: object }, done: Asked | undefined) => {
    if (!NAMING.has(message.q)) return ask(to, message, done);
    const wants = { ...message, a: { ...message.a, want: [WIRE[4].want, WIRE[6].want] } };
    return ask(to, wants, (error: Parameters<Asked>[0], reply: LibraryReply | null, from: SocketAddress) => {
      if (error === null) { for (const node of namedNodes(reply?.r, family === 4 ? 6 : 4)) other.named(node); }
      done?.(error, reply, from);
    });
  };
}

/** The DHTs whose nodes a query wants; without `want`, those of its own. */
function wantedOf(want: unknown, own: Family): Family[] {
  if (!Array.isArray(want)) return [own];
  const names = want.slice(0, 4).map(String);
  return ([4, 6] as const).filter((family) => names.includes(WIRE[family].want));
}
