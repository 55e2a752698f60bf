/**
 * ut_metadata (BEP 9) over the npm package of that name, which sees only checked messages: unprotected, it
 * writes outside its buffer on a bad piece number, requests everything at once, repeats refused requests, and
 * re-encodes what it hashed.
 */
import createLibraryExtension from "ut_metadata";
import { MillraceError } from "../errors.ts";
import type { Clock, Timer } from "../ports.ts";
import { integerWithin } from "../bytes/bencode.ts";
import { concatBytes } from "../bytes/hex.ts";
import { decodeDictionary } from "./bencode-check.ts";
import type { ControlWire } from "./control-wire.ts";
import {
  MAX_METADATA_BYTES,
  METADATA_BACKLOG_BYTES,
  METADATA_LEAST_RATE,
  METADATA_REQUESTS,
  METADATA_TIMEOUT_MS,
} from "./limits.ts";
import { hex20 } from "./peer-id.ts";

/** Size of a metadata piece, except the last (BEP 9). */
const METADATA_PIECE_BYTES = 16384;

/** What stands before a piece in its message: the ids and the dictionary, bytes. */
const MESSAGE_HEAD_BYTES = 64;

/** BEP 9 `msg_type`. */
const REQUEST = 0;
const DATA = 1;
const REJECT = 2;

/** The link, as the exchange sees it. */
export interface MetadataHost {
  readonly clock: Clock;
  readonly infohashHex: string;
  /** Bytes queued for the peer. */
  bufferedBytes(): number;
  /** An extended message of this length was asked for. */
  asked(lengthBytes: number): void;
  received(infoBytes: Uint8Array): void;
  failed(error: MillraceError): void;
}

interface LibraryExtension {
  metadata: Uint8Array | undefined;
  _fetching: boolean;
  _metadataComplete: boolean;
  _metadataSize: number | null;
  onExtendedHandshake(handshake: unknown): void;
  onMessage(payload: Uint8Array): void;
  fetch(): void;
  _request(piece: number): void;
  _reject(piece: number): void;
  _onRequest(piece: number): void;
  _requestPieces(): void;
}

const Base = createLibraryExtension() as new (wire: never) => LibraryExtension;

/** The exchange of one link. Create with `installMetadata`. */
export class MetadataExchange extends Base {
  readonly #wire: ControlWire;
  readonly #host: MetadataHost;
  readonly #outstanding = new Set<number>();
  /** The pieces that have arrived. Memory is allocated as they arrive: the size is only what the peer claimed. */
  #blocks: Uint8Array[] = [];
  #next = 0;
  #received = 0;
  #pieces = 0;
  #byMs = 0;
  #timer: Timer | null = null;
  #handshakeSeen = false;
  #closed = false;

  constructor(wire: ControlWire, host: MetadataHost) {
    super(wire as never);
    this.#wire = wire;
    this.#host = host;
  }

  /** Requests the metadata, now or when the extended handshake has come. */
  override fetch(): void {
    if (this._metadataComplete || this._fetching || this.#closed) return;
    this._fetching = true;
    if (this.#handshakeSeen) this.#startOrFail();
  }

  /** Bytes that have arrived of the fetch under way. */
  get receivedBytes(): number {
    return Math.min(this.#received * METADATA_PIECE_BYTES, this._metadataSize ?? 0);
  }

  /** Cancels a fetch without an error; it may be started again. */
  cancel(): void {
    if (this._fetching) this.#stopFetching();
  }

  /** The link has read an extended handshake. */
  handshakeRead(): void {
    this.#handshakeSeen = true;
    if (this._fetching && this.#pieces === 0) this.#startOrFail();
  }

  /** Serves `infoBytes` from now on, and informs a peer that already shook hands. */
  serve(infoBytes: Uint8Array, handshakeSent: boolean): void {
    if (this.#closed || this._metadataComplete || infoBytes.length > MAX_METADATA_BYTES) return;
    this.#stopFetching();
    this.metadata = infoBytes;
    this._metadataSize = infoBytes.length;
    this._metadataComplete = true;
    this.#wire.extendedHandshake.metadata_size = infoBytes.length;
    if (handshakeSent) this.#wire._sendExtendedHandshake();
  }

  close(): void {
    this.#closed = true;
    this.#stopFetching();
    this.metadata = undefined;
  }

  /** Called by the library with the checked handshake when it offers ut_metadata. */
  override onExtendedHandshake(handshake: unknown): void {
    // A size received while we serve or fetch must not replace the size in use.
    if (!this._metadataComplete && this.#pieces === 0) {
      this._metadataSize = (handshake as { metadata_size?: number }).metadata_size ?? null;
    }
  }

  /** Throws `protocol_violation` on malformed messages. */
  override onMessage(payload: Uint8Array): void {
    const { dictionary, end } = decodeDictionary(payload);
    const piece = integerWithin(dictionary.piece, 0, 0xffffffff);
    if (piece === null) throw new MillraceError("protocol_violation", "ut_metadata message without a piece");
    if (dictionary.msg_type === REQUEST) this.#requested(piece);
    else if (dictionary.msg_type === DATA) this.#dataArrived(piece, payload.subarray(end), dictionary.total_size);
    else if (dictionary.msg_type === REJECT && this.#outstanding.has(piece)) {
      this.#fail("unavailable", "the peer refused its metadata");
    }
  }

  override _requestPieces(): void {
    // Some clients leave the size out of their handshake; their first piece states it.
    const size = this._metadataSize ?? METADATA_PIECE_BYTES;
    this.#pieces = Math.ceil(size / METADATA_PIECE_BYTES);
    this.#byMs = this.#host.clock.monotonic() + METADATA_TIMEOUT_MS + size * 1000 / METADATA_LEAST_RATE;
    this.#refill();
  }

  get #offered(): boolean {
    return !!this.#wire.peerExtendedMapping.ut_metadata;
  }

  #startOrFail(): void {
    if (this.#offered) this._requestPieces();
    else this.#fail("unavailable", "the peer does not offer metadata");
  }

  #requested(piece: number): void {
    // Without the far end's extension id there is no way to reply.
    if (!this.#offered) return;
    const known = this._metadataComplete && piece * METADATA_PIECE_BYTES < this._metadataSize!;
    if (known && this.#host.bufferedBytes() < METADATA_BACKLOG_BYTES) this._onRequest(piece);
    else this._reject(piece);
  }

  #dataArrived(piece: number, data: Uint8Array, totalBytes: unknown): void {
    if (!this._fetching || !this.#outstanding.delete(piece)) return;
    if (this._metadataSize === null) {
      this._metadataSize = integerWithin(totalBytes, 1, MAX_METADATA_BYTES);
      if (this._metadataSize === null) {
        return this.#fail("unavailable", "the peer does not say how large its metadata is");
      }
      this._requestPieces();
    }
    const start = piece * METADATA_PIECE_BYTES;
    if (data.length !== Math.min(METADATA_PIECE_BYTES, this._metadataSize! - start)) {
      this.#fail("protocol_violation", "a metadata piece of the wrong length");
      return;
    }
    this.#blocks[piece] = data;
    this.#received++;
    if (this.#received === this.#pieces) this.#check();
    else this.#refill();
  }

  #refill(): void {
    while (this.#outstanding.size < METADATA_REQUESTS && this.#next < this.#pieces) {
      this.#outstanding.add(this.#next);
      this.#host.asked(METADATA_PIECE_BYTES + MESSAGE_HEAD_BYTES);
      this._request(this.#next++);
    }
    this.#timer?.cancel();
    this.#timer = this.#host.clock.setTimeout(
      () => this.#fail("timeout", "the peer sends its metadata too slowly"),
      Math.min(METADATA_TIMEOUT_MS, this.#byMs - this.#host.clock.monotonic()),
    );
  }

  #check(): void {
    const bytes = concatBytes(this.#blocks);
    this.#stopFetching();
    const digests = ["SHA-1", "SHA-256"].map((name) => crypto.subtle.digest(name, bytes));
    void Promise.all(digests).then((hashes) => {
      if (this.#closed) return;
      // Of a torrent of version 2 the infohash is the beginning of the longer one (BEP 52).
      const isNamed = hashes.some((hash) => hex20(new Uint8Array(hash, 0, 20)) === this.#host.infohashHex);
      if (isNamed) this.#host.received(bytes);
      else this.#host.failed(new MillraceError("protocol_violation", "the metadata does not match its infohash"));
    });
  }

  #fail(code: "unavailable" | "timeout" | "protocol_violation", message: string): void {
    if (!this._fetching) return;
    this.#stopFetching();
    this.#host.failed(new MillraceError(code, message));
  }

  #stopFetching(): void {
    this._fetching = false;
    this.#timer?.cancel();
    this.#timer = null;
    this.#outstanding.clear();
    this.#blocks = [];
    this.#next = 0;
    this.#received = 0;
    this.#pieces = 0;
  }
}

/** Registers ut_metadata on a wire, before its handshake. */
export function installMetadata(wire: ControlWire, host: MetadataHost): MetadataExchange {
  const made: MetadataExchange[] = [];
  wire.use(
    class extends MetadataExchange {
      constructor(_: never) {
        super(wire, host);
        made.push(this);
      }
    } as never,
  );
  return made[0]!;
}
