/** First contacts of the DHT whose names a proxy looks up: their addresses are known only from their replies. */
import { encodeBencode } from "../bytes/bencode.ts";
import { toHex } from "../bytes/hex.ts";
import type { SocketAddress, UdpSocket } from "../ports.ts";
import { decodeMessage } from "./bencode.ts";

/** Longer than those of the library, so that no reply is taken for one of the other kind. */
const TRANSACTION_BYTES = 12;
/** Pings whose replies are awaited; the oldest is dropped first. Users name a handful of contacts. */
const MAX_AWAITED = 32;
/** A reply to a ping has 20 bytes of id, and little besides. */
const LIMITS = { maxBytes: 1024, maxDepth: 4, maxValues: 32 } as const;

/** Pings contacts by name. */
export class NamedContacts {
  readonly #socket: UdpSocket;
  readonly #awaited = new Set<string>();

  /** `found` gets the address of each that replies. */
  constructor(socket: UdpSocket, found: (address: SocketAddress) => void) {
    this.#socket = socket;
    socket.onMessage((data, from) => {
      if (this.#awaited.size > 0 && this.#awaited.delete(transactionOf(data))) found(from);
    });
  }

  /** Asks `contact`, with our own node's `id`. */
  ping(contact: SocketAddress, id: Uint8Array): void {
    const transaction = crypto.getRandomValues(new Uint8Array(TRANSACTION_BYTES));
    this.#awaited.add(toHex(transaction));
    if (this.#awaited.size > MAX_AWAITED) this.#awaited.delete(this.#awaited.values().next().value!);
    const query = encodeBencode({ a: { id }, q: "ping", t: transaction, y: "q" });
    this.#socket.send(query, contact).catch(() => {});
  }
}

/** The transaction of a message, hexadecimal; "" when it has none. */
function transactionOf(data: Uint8Array): string {
  try {
    const { t } = decodeMessage(data, LIMITS);
    return t instanceof Uint8Array ? toHex(t) : "";
  } catch {
    return "";
  }
}
