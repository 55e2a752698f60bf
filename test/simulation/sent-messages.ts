/** Counts what simulated members send that is not payload. */

/** `live1` messages by their first byte. */
export const MESSAGE_NAMES = [
  "WINDOW",
  "HEADER",
  "SUB",
  "UNSUB",
  "PING",
  "PLACE",
  "REACH",
  "PEERS",
  "SEEK",
  "PROBE",
  "PUNCH",
  "HEADERS",
  "SOURCE",
  "FILL",
  "PONG",
] as const;

/** A kind of message: one of `live1`, or a standard one. */
export type MessageName = typeof MESSAGE_NAMES[number] | "request" | "cancel" | "reject";

/** Messages of one member or of many, by kind. */
export class SentMessages {
  readonly #kinds = new Map<MessageName, { count: number; bytes: number }>();

  /** A message of `bytes`, its length prefix included, was sent. */
  add(name: MessageName, bytes: number, count = 1): void {
    const kind = this.#kinds.get(name);
    if (kind === undefined) this.#kinds.set(name, { count, bytes });
    else {
      kind.count += count;
      kind.bytes += bytes;
    }
  }

  /** Adds what `other` has sent. */
  addAll(other: SentMessages): void {
    for (const [name, { count, bytes }] of other.#kinds) this.add(name, bytes, count);
  }

  get count(): number {
    return [...this.#kinds.values()].reduce((sum, { count }) => sum + count, 0);
  }

  get bytes(): number {
    return [...this.#kinds.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Share of each kind in the bytes, the largest first, and how many there were. One that went in another's BUNDLE counts as none. */
  get shares(): { readonly name: MessageName; readonly share: number; readonly count: number }[] {
    const all = this.bytes;
    return [...this.#kinds].map(([name, { bytes, count }]) => ({ name, share: bytes / all, count })).sort((a, b) =>
      b.share - a.share
    );
  }
}
