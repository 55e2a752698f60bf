/** Interprets the messages after the handshake: checks them, keeps requests that must be answered, calls the handlers. */
import { type PieceSizes, requestableBytes } from "../bytes/piece-shape.ts";
import { MillraceError } from "../errors.ts";
import type { ControlWire } from "./control-wire.ts";
import { readExtendedHandshake } from "./extended-handshake.ts";
import { type FrameSink, MessageId } from "./frame-reader.ts";
import { HashMessageId, readHashMessage } from "./hash-messages.ts";
import { MAX_BLOCK_BYTES, MAX_HANDSHAKE_BYTES, MAX_LIVE_PIECES, MAX_PIECES } from "./limits.ts";
import { unitsOf, unitsOfBlock, unitsOfSkipped } from "./message-allowance.ts";
import type { MetadataExchange } from "./metadata-exchange.ts";
import type { Outbox } from "./outbox.ts";
import type { RequestLedger } from "./request-ledger.ts";
import type { PeerLinkHandlers } from "./types.ts";

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
  #shape: PieceSizes | null = null;
  #piecesTold = false;
  #allTold = false;

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
    this.#maxPieces = parts.live ? MAX_LIVE_PIECES : MAX_PIECES;
  }

  /** As `PeerLink.setPieceCount`. */
  setPieceCount(count: number, shape: PieceSizes | null): void {
    this.#pieceCount = count;
    this.#shape = shape;
  }

  numbers(id: number, a: number, b: number, c: number): void {
    const handlers = this.#parts.handlers;
    // An accepted request is paid for by what it downloads.
    if (id !== MessageId.request) this.#parts.spend(unitsOf(id, null));
    const isFast = id === MessageId.reject || id === MessageId.allowedFast || id === MessageId.suggest;
    if (isFast && !this.#parts.wire.hasFast) throw violation(`message ${id} without the fast extension`);
    if (id !== MessageId.request && !this.#exists(a)) return;
    switch (id) {
      case MessageId.have:
        this.#piecesTold = true;
        return handlers.torrent?.have(a);
      case MessageId.request:
        return this.#requested(a, b, c);
      case MessageId.cancel:
        if (!this.#parts.requests.remove(a, b)) return handlers.unwanted?.(a, b, c);
        // BEP 6: a cancelled request is rejected, too.
        if (this.#parts.wire.hasFast) this.#parts.outbox.triple(MessageId.reject, a, b, c);
        return handlers.cancel(a, b, c);
    }
    if (id === MessageId.reject) handlers.reject(a, b, c);
    else if (id === MessageId.allowedFast) handlers.torrent?.allowedFast(a);
    else handlers.torrent?.suggest?.(a);
  }

  /** BEP 54. */
  dontHave(piece: number): void {
    if (this.#exists(piece)) this.#parts.handlers.torrent?.dontHave?.(piece);
  }

  blockTarget(piece: number, offset: number, length: number): Uint8Array | null {
    if (!this.#isInside(piece, offset, length)) {
      throw violation(`block ${piece}:${offset}+${length} is outside the torrent or too large`);
    }
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
      this.#parts.wire.feedMessage(message);
      return handlers.torrent?.bitfield(message.subarray(1));
    }
    if (id >= HashMessageId.request && id <= HashMessageId.reject) return this.#hashArrived(id, message);
    this.#parts.wire.feedMessage(message);
    switch (id) {
      case MessageId.choke:
        return handlers.torrent?.choke();
      case MessageId.unchoke:
        return handlers.torrent?.unchoke();
      case MessageId.interested:
        return handlers.torrent?.interested();
      case MessageId.uninterested:
        return handlers.torrent?.uninterested();
      case MessageId.haveAll:
        return handlers.torrent?.haveAll();
      case MessageId.haveNone:
        return handlers.torrent?.haveNone();
      case MessageId.port: {
        const port = (message[1]! << 8) | message[2]!;
        if (port !== 0) handlers.dhtPort(port);
      }
    }
  }

  #hashArrived(id: number, message: Uint8Array): void {
    const { handlers } = this.#parts;
    const { request, hashes } = readHashMessage(message);
    if (id === HashMessageId.hashes) handlers.torrent?.hashes?.(request, hashes);
    else if (id === HashMessageId.reject) handlers.torrent?.hashReject?.(request);
    else handlers.torrent?.hashRequest?.(request);
  }

  #extendedArrived(message: Uint8Array): void {
    if (message[1] !== 0) return this.#parts.wire.feedMessage(message);
    const read = message.length > MAX_HANDSHAKE_BYTES ? null : readExtendedHandshake(message.subarray(2));
    // A malformed or giant one is ignored: the peer has no extensions, or keeps those of its last handshake.
    if (read === null) return;
    const { info, message: checked } = read;
    this.#parts.wire.feedMessage(checked);
    this.#parts.handlers.extended(info);
    this.#parts.metadataExchange?.handshakeRead();
  }

  #requested(piece: number, offset: number, length: number): void {
    const { hasFast, amChoking } = this.#parts.wire;
    const isFine = !amChoking && this.#isInside(piece, offset, length);
    const outcome = isFine ? this.#parts.requests.add(piece, offset, length) : "full";
    if (outcome === "added") return this.#parts.handlers.request(piece, offset, length);
    this.#parts.spend(unitsOf(MessageId.request, null));
    if (outcome === "full" && hasFast) this.#parts.outbox.triple(MessageId.reject, piece, offset, length);
  }

  /** Whether there may be such a piece. Messages about others are ignored: they cost us nothing more. */
  #exists(piece: number): boolean {
    return piece < (this.#pieceCount ?? this.#maxPieces);
  }

  #isInside(piece: number, offset: number, length: number): boolean {
    const isBlock = length > 0 && length <= MAX_BLOCK_BYTES && this.#exists(piece);
    if (!isBlock || this.#shape === null) return isBlock;
    return offset + length <= requestableBytes(this.#shape, piece);
  }
}
