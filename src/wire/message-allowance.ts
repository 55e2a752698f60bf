/**
 * How much work a peer may cause by control messages. A message costs about as many units as the microseconds that it takes
 * to handle; blocks that were asked for are free, since bandwidth bounds them.
 */
import { Allowance } from "../bytes/allowance.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { MessageId } from "./frame-reader.ts";

/** Units a second: half a percent of a processor. A peer that downloads at 1 Gbit/s sends some 2000 `have`s a second. */
const UNITS_PER_S = 5_000;

/** Units saved up: a newcomer tells of its pieces one by one, and a choke refuses hundreds of requests at once. */
const BURST_UNITS = 80_000;

/** Units on top for each piece of the torrent: a peer may tell of all of them, lose them, and tell again. */
const UNITS_PER_PIECE = 4;

/** A message of a few numbers. */
const SMALL_UNITS = 1;

/** A change of choke or interest: it looks at all peers of the swarm. */
const STATE_UNITS = 8;

/** A bitfield or an extended message, whatever its size, */
const GATHERED_UNITS = 20;

/** and one more unit for so many bytes of it: of a bitfield, of an extended handshake (BEP 10), of other messages. */
const BITFIELD_BYTES_PER_UNIT = 16;
const HANDSHAKE_BYTES_PER_UNIT = 4;
const EXTENDED_BYTES_PER_UNIT = 64;

/** A block that nobody wants, or that is so small that its header is most of it, */
const USELESS_BLOCK_UNITS = 10;

/** and one more unit for so many bytes of it, or of a message that is skipped: reading them is all the work. */
const SKIPPED_BYTES_PER_UNIT = 1024;

/** Blocks from this length on are free when they are kept. */
const LEAST_BLOCK_BYTES = 1024;

const STATE_MESSAGES: ReadonlySet<number> = new Set([
  MessageId.choke,
  MessageId.unchoke,
  MessageId.interested,
  MessageId.uninterested,
  MessageId.port,
]);

/** Units that a message costs; `message` without its length prefix, null for one of up to three numbers. */
export function unitsOf(id: number, message: Uint8Array | null): number {
  if (message === null) return SMALL_UNITS;
  if (STATE_MESSAGES.has(id)) return STATE_UNITS;
  if (id === MessageId.bitfield) return GATHERED_UNITS + Math.ceil(message.length / BITFIELD_BYTES_PER_UNIT);
  if (id !== MessageId.extended) return SMALL_UNITS;
  const perUnit = message[1] === 0 ? HANDSHAKE_BYTES_PER_UNIT : EXTENDED_BYTES_PER_UNIT;
  return GATHERED_UNITS + Math.ceil(message.length / perUnit);
}

/** Units that a message of an unknown id costs, or an empty one. */
export function unitsOfSkipped(lengthBytes: number): number {
  return SMALL_UNITS + Math.floor(lengthBytes / SKIPPED_BYTES_PER_UNIT);
}

/** Units that a block costs; most cost nothing. */
export function unitsOfBlock(lengthBytes: number, kept: boolean): number {
  if (kept && lengthBytes >= LEAST_BLOCK_BYTES) return 0;
  return USELESS_BLOCK_UNITS + Math.floor(lengthBytes / SKIPPED_BYTES_PER_UNIT);
}

/** What one peer has left. */
export class MessageAllowance {
  readonly #nowMs: () => number;
  readonly #allowance: Allowance;
  #pieceCount = 0;

  constructor(clock: Clock) {
    this.#nowMs = () => clock.monotonic();
    this.#allowance = new Allowance(UNITS_PER_S, BURST_UNITS, clock.monotonic());
  }

  /** The number of pieces is known: there is that much more to tell. */
  setPieceCount(count: number): void {
    this.#allowance.widen(UNITS_PER_PIECE * Math.max(0, count - this.#pieceCount));
    this.#pieceCount = Math.max(this.#pieceCount, count);
  }

  /** Throws `protocol_violation` when the peer sent more than any client does. */
  spend(units: number): void {
    if (this.#allowance.take(units, this.#nowMs)) return;
    throw new MillraceError("protocol_violation", "the peer floods us with messages");
  }
}
