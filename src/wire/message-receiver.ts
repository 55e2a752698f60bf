/** Interprets the messages after the handshake: checks them, keeps requests that must be answered, calls the handlers. */
import { MillraceError } from "../errors.ts";
import type { ControlWire } from "./control-wire.ts";
import { readExtendedHandshake } from "./extended-handshake.ts";
import { type FrameSink, MessageId } from "./frame-reader.ts";
import { MAX_BLOCK_BYTES, MAX_HANDSHAKE_BYTES, MAX_LIVE_PIECES, MAX_PIECES } from "./limits.ts";
import { unitsOf, unitsOfBlock, unitsOfSkipped } from "./message-allowance.ts";
import type { MetadataExchange } from "./metadata-exchange.ts";
import type { Outbox } from "./outbox.ts";
import type { RequestLedger } from "./request-ledger.ts";
import type { PeerLinkHandlers, PieceShape } from "./types.ts";

/** The parts that a receiver shares with its link. */
export interface ReceiverParts {
  readonly wire: ControlWire;
  readonly outbox: Outbox;
  readonly requests: RequestLedger;
  readonly metadataExchange: MetadataExchange | null;
  readonly counters: { downloadedPayloadBytes: number };
  readonly handlers: PeerLinkHandlers;
  /** The torrent is a live broadcast. */
  readonly live: boolean;
  /** Counts work that the peer causes; throws `protocol_violation` when it is too much. */
  spend(units: number): void;
}

function violation(message: string): MillraceError {
  return new MillraceError("protocol_violation", message);
}

/** The messages of one link. Its methods throw `protocol_violation`. */
export class MessageReceiver implements FrameSink {
  readonly #parts: ReceiverParts;
  /** Limit on piece numbers while the piece count is unknown. */
  readonly #maxPieces: number;
  #pieceCount: number | null = null;
  #shape: PieceShape | null = null;
  /** Kept until the piece count is known and the bitfield can be checked. */
  #bitfieldBytes: Uint8Array | null = null;
  #piecesTold = false;
  #allTold = false;
  #highestPiece = -1;

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
    this.#maxPieces = parts.live ? MAX_LIVE_PIECES : MAX_PIECES;
  }

  /** As `PeerLink.setPieceCount`; returns what was wrong with earlier messages. */
  setPieceCount(count: number, shape: PieceShape | null): MillraceError | null {
    this.#pieceCount = count;
    this.#shape = shape;
    const bits = this.#bitfieldBytes;
    this.#bitfieldBytes = null;
    if (this.#highestPiece >= count) return violation("the peer named a piece beyond the last");
    if (bits !== null && !fits(bits, count)) return violation("the peer's bitfield does not fit the torrent");
    return null;
  }

  numbers(id: number, a: number, b: number, c: number): void {
    if (a >= (this.#pieceCount ?? this.#maxPieces)) throw violation(`message ${id} names piece ${a}`);
    const handlers = this.#parts.handlers;
    // An accepted request is paid for by what it downloads.
    if (id !== MessageId.request) this.#parts.spend(unitsOf(id, null));
    switch (id) {
      case MessageId.have:
        this.#piecesTold = true;
        if (a > this.#highestPiece) this.#highestPiece = a;
        return handlers.have(a);
      case MessageId.request:
        return this.#requested(a, b, c);
      case MessageId.cancel:
        if (!this.#parts.requests.remove(a, b)) return handlers.unwanted?.(a, b, c);
        // BEP 6: a cancelled request is rejected, too.
        if (this.#parts.wire.hasFast) this.#parts.outbox.triple(MessageId.reject, a, b, c);
        return handlers.cancel(a, b, c);
    }
    if (!this.#parts.wire.hasFast) throw violation(`message ${id} without the fast extension`);
    if (id === MessageId.reject) handlers.reject(a, b, c);
    else if (id === MessageId.allowedFast) handlers.allowedFast(a);
  }

  /** BEP 54. */
  dontHave(piece: number): void {
    if (piece >= (this.#pieceCount ?? this.#maxPieces)) throw violation(`lt_donthave names piece ${piece}`);
    // Until the metadata is known this is a piece number to check later, like any other.
    if (piece > this.#highestPiece) this.#highestPiece = piece;
    this.#parts.handlers.dontHave?.(piece);
  }

  blockTarget(piece: number, offset: number, length: number): Uint8Array | null {
    this.#checkBlock(piece, offset, length);
    return this.#parts.handlers.blockTarget(piece, offset, length);
  }

  blockBytes(count: number): void {
    this.#parts.counters.downloadedPayloadBytes += count;
  }

  block(piece: number, offset: number, length: number, kept: boolean): void {
    this.#parts.spend(unitsOfBlock(length, kept));
    this.#parts.handlers.block(piece, offset, length, kept);
  }

  skipped(lengthBytes: number): void {
    this.#parts.spend(unitsOfSkipped(lengthBytes));
  }

  message(id: number, message: Uint8Array): void {
    this.#parts.spend(unitsOf(id, message));
    const handlers = this.#parts.handlers;
    switch (id) {
      case MessageId.extended:
        return this.#extendedArrived(message);
      case MessageId.haveNone:
        // A peer does not lose all its pieces, so a late one is ignored.
        if (this.#piecesTold) return;
        this.#piecesTold = true;
        break;
      case MessageId.haveAll:
        // A five-byte message that causes work for every piece takes effect only once.
        if (this.#allTold) return;
        this.#piecesTold = this.#allTold = true;
    }
    if (id === MessageId.bitfield) {
      // BEP 3 and 6 want it first and only once, but aria2 sends more of them, instead of many `have`s, as it gets pieces.
      this.#piecesTold = true;
      const bits = message.subarray(1);
      if (this.#pieceCount === null) this.#bitfieldBytes = bits;
      else if (!fits(bits, this.#pieceCount)) throw violation("the bitfield does not fit the torrent");
      this.#parts.wire.feedMessage(message);
      return handlers.bitfield(bits);
    }
    this.#parts.wire.feedMessage(message);
    switch (id) {
      case MessageId.choke:
        return handlers.choke();
      case MessageId.unchoke:
        return handlers.unchoke();
      case MessageId.interested:
        return handlers.interested();
      case MessageId.uninterested:
        return handlers.uninterested();
      case MessageId.haveAll:
        return handlers.haveAll();
      case MessageId.haveNone:
        return handlers.haveNone();
      case MessageId.port: {
        const port = (message[1]! << 8) | message[2]!;
        if (port !== 0) handlers.dhtPort(port);
      }
    }
  }

  #extendedArrived(message: Uint8Array): void {
    if (message[1] !== 0) return this.#parts.wire.feedMessage(message);
    if (message.length > MAX_HANDSHAKE_BYTES) throw violation("the extended handshake is larger than any client's");
    const { info, message: checked } = readExtendedHandshake(message.subarray(2));
    this.#parts.wire.feedMessage(checked);
    this.#parts.handlers.extended(info);
    this.#parts.metadataExchange?.handshakeRead();
  }

  #requested(piece: number, offset: number, length: number): void {
    this.#checkBlock(piece, offset, length);
    const { hasFast, amChoking } = this.#parts.wire;
    const outcome = amChoking ? "full" : this.#parts.requests.add(piece, offset, length);
    if (outcome === "added") return this.#parts.handlers.request(piece, offset, length);
    this.#parts.spend(unitsOf(MessageId.request, null));
    if (outcome === "full") {
      if (hasFast) this.#parts.outbox.triple(MessageId.reject, piece, offset, length);
      else if (!amChoking) throw violation("more requests than allowed");
    }
  }

  #checkBlock(piece: number, offset: number, length: number): void {
    let inside = length > 0 && length <= MAX_BLOCK_BYTES && piece < (this.#pieceCount ?? this.#maxPieces);
    if (inside && this.#shape !== null) {
      const { pieceLengthBytes, totalBytes } = this.#shape;
      inside = offset + length <= Math.min(pieceLengthBytes, totalBytes - piece * pieceLengthBytes);
    }
    if (!inside) throw violation(`block ${piece}:${offset}+${length} is outside the torrent or too large`);
  }
}

/** True when the bitfield has the right length and its spare bits are zero (BEP 3). */
function fits(bits: Uint8Array, count: number): boolean {
  if (bits.length !== Math.ceil(count / 8)) return false;
  return (count & 7) === 0 || (bits[bits.length - 1]! & (0xff >> (count & 7))) === 0;
}
