/**
 * ut_pex (BEP 11) over the npm package of that name. Its timers, its memory of announced peers and its wall-clock rate
 * check (which drops the connection) are not used: the swarm decides when to send what, and the link's clock limits
 * what is read.
 */
import bencode from "bencode";
import createLibraryExtension from "ut_pex";
import type { Clock, SocketAddress } from "../ports.ts";
import { addressBytes, addressText, formatEndpoint, parseEndpoint } from "./address.ts";
import { decodeDictionary } from "./bencode-check.ts";
import type { ControlWire } from "./control-wire.ts";
import { PEX_INTERVAL_MS, PEX_PEERS } from "./limits.ts";

/** The link, as the exchange sees it. */
export interface PeerExchangeHost {
  readonly clock: Clock;
  peers(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void;
}

interface LibraryExtension {
  _lastMessageTimestamp: number;
  on(event: "peer" | "dropped", listener: (endpoint: string) => void): void;
  reset(): void;
  addPeer(endpoint: string): void;
  addPeer6(endpoint: string): void;
  dropPeer(endpoint: string): void;
  dropPeer6(endpoint: string): void;
  onMessage(payload: Uint8Array): void;
  _sendMessage(): void;
}

const Base = createLibraryExtension() as new (wire: never) => LibraryExtension;

/** Address lists of a message, with the bytes per entry. */
const LISTS = { added: 6, added6: 18, dropped: 6, dropped6: 18 } as const;

/** The exchange of one link. Create with `installPeerExchange`. */
export class PeerExchange extends Base {
  readonly #wire: ControlWire;
  readonly #host: PeerExchangeHost;
  #lastReadMs = -Infinity;
  #added: string[] = [];
  #dropped: string[] = [];

  constructor(wire: ControlWire, host: PeerExchangeHost) {
    super(wire as never);
    this.#wire = wire;
    this.#host = host;
    this.on("peer", (endpoint) => this.#added.push(endpoint));
    this.on("dropped", (endpoint) => this.#dropped.push(endpoint));
  }

  /** Reads a message; one that comes too early is ignored. Throws `protocol_violation` on malformed bencoding. */
  override onMessage(payload: Uint8Array): void {
    const now = this.#host.clock.monotonic();
    if (now - this.#lastReadMs < PEX_INTERVAL_MS) return;
    this.#lastReadMs = now;
    const { dictionary } = decodeDictionary(payload);
    const clean: Record<string, Uint8Array> = {};
    for (const [name, entryBytes] of Object.entries(LISTS)) {
      const list = dictionary[name];
      if (!(list instanceof Uint8Array)) continue;
      clean[name] = list.subarray(0, Math.min(Math.floor(list.length / entryBytes), PEX_PEERS) * entryBytes);
    }
    this.reset();
    this._lastMessageTimestamp = 0;
    super.onMessage(bencode.encode(clean));
    this.reset();
    const added = this.#added.map(parseEndpoint).filter((address) => address !== null).slice(0, PEX_PEERS);
    const dropped = this.#dropped.map(parseEndpoint).filter((address) => address !== null).slice(0, PEX_PEERS);
    this.#added = [];
    this.#dropped = [];
    if (added.length + dropped.length > 0) this.#host.peers(added, dropped);
  }

  /** Sends at most 50 added and 50 dropped peers; the rest and malformed addresses are left out. */
  send(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void {
    if (!this.#wire.peerExtendedMapping.ut_pex) return;
    this.reset();
    for (const { endpoint, v6 } of endpoints(added)) v6 ? this.addPeer6(endpoint) : this.addPeer(endpoint);
    for (const { endpoint, v6 } of endpoints(dropped)) v6 ? this.dropPeer6(endpoint) : this.dropPeer(endpoint);
    this._sendMessage();
    this.reset();
  }
}

function* endpoints(addresses: readonly SocketAddress[]): Iterable<{ endpoint: string; v6: boolean }> {
  for (const { host, port } of addresses.slice(0, PEX_PEERS)) {
    const bytes = addressBytes(host);
    if (bytes === null || port < 1 || port > 65535) continue;
    yield { endpoint: formatEndpoint({ host: addressText(bytes)!, port }), v6: bytes.length === 16 };
  }
}

/** Registers ut_pex on a wire, before its handshake. */
export function installPeerExchange(wire: ControlWire, host: PeerExchangeHost): PeerExchange {
  const made: PeerExchange[] = [];
  wire.use(
    class extends PeerExchange {
      constructor(_: never) {
        super(wire, host);
        made.push(this);
      }
    } as never,
  );
  return made[0]!;
}
