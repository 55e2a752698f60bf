/**
 * Limits the work a peer may cause with control messages. A message costs about as many units as the microseconds it
 * takes to handle; requested blocks are free, since bandwidth bounds them.
 */
import { Allowance } from "../bytes/allowance.ts";
import type { Clock } from "../ports.ts";
import { MessageId } from "./frame-reader.ts";
import { HashMessageId } from "./hash-messages.ts";
import { grave } from "./offence.ts";

/** Units per second: half a percent of a processor. A peer that downloads at 1 Gbit/s sends some 2000 `have`s per second. */
const UNITS_PER_S = 5_000;

/** Units saved up: a newcomer announces its pieces one by one, and a choke rejects hundreds of requests at once. */
const BURST_UNITS = 80_000;

/** Extra units per piece of the torrent: a peer may announce all of them, lose them, and announce them again. */
const UNITS_PER_PIECE = 4;

/** A message of a few numbers. */
const SMALL_UNITS = 1;

/** A change of choke or interest: it makes us look at all peers of the swarm. */
const STATE_UNITS = 8;

/** Base cost of a bitfield or an extended message. */
const GATHERED_UNITS = 20;

/** Each unit on top covers this many bytes: of a bitfield, of an extended handshake (BEP 10), of other messages. */
const BITFIELD_BYTES_PER_UNIT = 16;
const HANDSHAKE_BYTES_PER_UNIT = 4;
const EXTENDED_BYTES_PER_UNIT = 64;

/** A request for hashes (BEP 52) is found and copied; what costs more has a limit of its own (`HashExchange`). */
const HASH_REQUEST_UNITS = 10;

/** Base cost of an unwanted block, or of one so small that it is mostly header. */
const USELESS_BLOCK_UNITS = 10;

/** Each unit on top covers this many bytes of such a block or of a skipped message: reading them is all the work. */
const SKIPPED_BYTES_PER_UNIT = 1024;

/** Kept blocks of at least this length are free. */
const LEAST_BLOCK_BYTES = 1024;

const STATE_MESSAGES: ReadonlySet<number> = new Set([
  MessageId.choke,
  MessageId.unchoke,
  MessageId.interested,
  MessageId.uninterested,
  MessageId.port,
]);

/** Cost of a message in units; `message` is without its length prefix, null for one of up to three numbers. */
export function unitsOf(id: number, message: Uint8Array | null): number {
  if (message === null) return SMALL_UNITS;
  if (STATE_MESSAGES.has(id)) return STATE_UNITS;
  if (id === MessageId.bitfield) return GATHERED_UNITS + Math.ceil(message.length / BITFIELD_BYTES_PER_UNIT);
  if (id === HashMessageId.request) return HASH_REQUEST_UNITS;
  if (id !== MessageId.extended && id !== HashMessageId.hashes) return SMALL_UNITS;
  const perUnit = id === MessageId.extended && message[1] === 0 ? HANDSHAKE_BYTES_PER_UNIT : EXTENDED_BYTES_PER_UNIT;
  return GATHERED_UNITS + Math.ceil(message.length / perUnit);
}

/** Cost in units of a message of an unknown id, or of an empty one. */
export function unitsOfSkipped(lengthBytes: number): number {
  return SMALL_UNITS + Math.floor(lengthBytes / SKIPPED_BYTES_PER_UNIT);
}

/** Cost of a block in units; most blocks cost nothing. */
export function unitsOfBlock(lengthBytes: number, kept: boolean): number {
  if (kept && lengthBytes >= LEAST_BLOCK_BYTES) return 0;
  return USELESS_BLOCK_UNITS + Math.floor(lengthBytes / SKIPPED_BYTES_PER_UNIT);
}

/** The allowance of one peer. */
export class MessageAllowance {
  readonly #nowMs: () => number;
  readonly #allowance: Allowance;
  #pieceCount = 0;

  constructor(clock: Clock) {
    this.#nowMs = () => clock.monotonic();
    this.#allowance = new Allowance(UNITS_PER_S, BURST_UNITS, clock.monotonic());
  }

  /** The number of pieces is known: the peer may send that many more announcements. */
  setPieceCount(count: number): void {
    this.#allowance.widen(UNITS_PER_PIECE * Math.max(0, count - this.#pieceCount));
    this.#pieceCount = Math.max(this.#pieceCount, count);
  }

  /** We asked for an extended message, or for hashes, of this length: its units are free. */
  expect(lengthBytes: number): void {
    this.#allowance.grant(GATHERED_UNITS + Math.ceil(lengthBytes / EXTENDED_BYTES_PER_UNIT));
  }

  /** Throws `protocol_violation` when the peer has sent more than any client does. */
  spend(units: number): void {
    if (this.#allowance.take(units, this.#nowMs)) return;
    throw grave("flood", "the peer sent a flood of messages");
  }
}
