/**
 * The control plane: bittorrent-protocol, driven without its stream. The library is a Node stream that parses what is
 * written to it and emits what it sends, each a microtask later, so frames that we decode and encode ourselves would
 * overtake those that pass through it. Its parser and its output hook are synchronous, so they are called directly:
 * `_write` during the handshakes (plain or encrypted), `_onMessage` with one whole message after them.
 *
 * This is safe only with a pinned version: the members named below are not part of the library's public API.
 */
import Library from "bittorrent-protocol";
import { MillraceError } from "../errors.ts";
import { MseKeyExchange } from "./mse-key-exchange.ts";

/** The part of an extension that the library calls. */
export interface WireExtension {
  onHandshake?(infohashHex: string, peerIdHex: string, flags: PeerFlags): void;
  onExtendedHandshake?(handshake: unknown): void;
  onMessage?(payload: Uint8Array): void;
}

/** Reserved bits of the far end's handshake. */
export interface PeerFlags {
  readonly dht: boolean;
  readonly fast: boolean;
  readonly extended: boolean;
}

/** The members of the library's class that are used, as of 5.0.9. */
interface LibraryWire {
  amChoking: boolean;
  hasFast: boolean;
  readonly peerIdBuffer: Uint8Array | null;
  readonly peerExtendedMapping: Record<string, number>;
  extendedHandshake: Record<string, unknown>;
  _finished: boolean;
  _buffer: Uint8Array[];
  _bufferSize: number;
  readonly _encryptor: {
    readonly _isEncrypted: boolean;
    _dh: unknown;
    encrypt(bytes: Uint8Array): Uint8Array;
    decrypt(bytes: Uint8Array): Uint8Array;
  } | null;
  on(event: "handshake", listener: (infohashHex: string, peerIdHex: string, flags: PeerFlags) => void): void;
  on(event: "crypto-handshake", listener: () => void): void;
  on(event: "crypto-infohash", listener: (obfuscatedHex: string) => void): void;
  use(extension: new (wire: never) => WireExtension): void;
  handshake(infohash: Uint8Array, peerId: Uint8Array, flags: { dht: boolean; fast: boolean }): void;
  _push(bytes: Uint8Array): boolean | undefined;
  startEncryption(infohashHex: string): void;
  setInfoHash(infohashHex: string): void;
  choke(): void;
  unchoke(): void;
  interested(): void;
  uninterested(): void;
  bitfield(bytes: Uint8Array): void;
  haveAll(): void;
  haveNone(): void;
  port(port: number): void;
  keepAlive(): void;
  extended(name: string | number, payload: unknown): void;
  _write(bytes: Uint8Array, callback: () => void): void;
  _parse(size: number, parser: (bytes: Uint8Array) => void): void;
  _onHandshakeBuffer(bytes: Uint8Array): void;
  _onMessage(message: Uint8Array): void;
  _sendExtendedHandshake(): void;
}

const Base = Library as unknown as new (type: string, encryption: 0 | 1 | 2) => LibraryWire;

/** Bytes of a handshake after its length byte (BEP 3). */
const HANDSHAKE_TAIL_BYTES = 67;

/** Where a handshake says that its sender knows version 2 (BEP 52): the last of the reserved bytes. */
const V2_BYTE = 27;
const V2_BIT = 0x10;

const ignore = (): void => {};

/** One wire of the library, with us transporting its bytes. */
export class ControlWire extends Base {
  /** Receives what the library sends, already encrypted where necessary. */
  output: (bytes: Uint8Array) => void = ignore;
  /** Our handshake says that we know version 2 (BEP 52). */
  marksV2 = false;
  #surplus: Uint8Array | null = null;
  #isShaking = false;
  #rejected = false;

  /** MSE is offered when outgoing and detected when incoming. 0: not at all; 1: also its plaintext form; 2: RC4 alone. */
  constructor(incoming: boolean, encryption: 0 | 1 | 2) {
    super(incoming ? "tcpIncoming" : "tcpOutgoing", encryption);
    if (this._encryptor !== null) this._encryptor._dh = new MseKeyExchange(incoming);
  }

  /** Bytes kept of an unfinished handshake. */
  get bufferedBytes(): number {
    return this._bufferSize;
  }

  /** RC4 is on: all bytes pass through `encrypt` and `decrypt`. */
  get encrypted(): boolean {
    return this._encryptor !== null && this._encryptor._isEncrypted;
  }

  encrypt(bytes: Uint8Array): Uint8Array {
    return this._encryptor === null ? bytes : this._encryptor.encrypt(bytes);
  }

  decrypt(bytes: Uint8Array): Uint8Array {
    return this._encryptor === null ? bytes : this._encryptor.decrypt(bytes);
  }

  override handshake(infohash: Uint8Array, peerId: Uint8Array, flags: { dht: boolean; fast: boolean }): void {
    this.#isShaking = true;
    super.handshake(infohash, peerId, flags);
  }

  /** The library knows nothing of BEP 52, and sends its handshake as one array of its own. */
  override _push(bytes: Uint8Array): boolean | undefined {
    if (this.#isShaking && this.marksV2) bytes[V2_BYTE]! |= V2_BIT;
    this.#isShaking = false;
    return super._push(bytes);
  }

  /** Feeds handshake bytes; the library keeps them. Throws `protocol_violation`. */
  feedHandshake(bytes: Uint8Array): void {
    this.#guard(() => this._write(bytes, ignore));
  }

  /**
   * Names the torrent of an incoming encrypted connection, which lets its handshake continue. Throws
   * `protocol_violation`.
   */
  resolveInfohash(infohashHex: string): void {
    this.#guard(() => this.setInfoHash(infohashHex));
  }

  /** The bytes fed after the handshake, decrypted; empties the library's buffer. */
  takeRest(): Uint8Array[] {
    const rest = this.#surplus === null ? this._buffer : [this.#surplus, ...this._buffer];
    this.#surplus = null;
    this._buffer = [];
    this._bufferSize = 0;
    return rest.filter((bytes) => bytes.length > 0);
  }

  /** Feeds one message without its length prefix; the library may keep it. Throws `protocol_violation`. */
  feedMessage(message: Uint8Array): void {
    this.#guard(() => this._onMessage(message));
  }

  /** From now on the library sends nothing. */
  retire(): void {
    this._finished = true;
    this.output = ignore;
    this._parse(Infinity, ignore);
  }

  /** The stream's output hook. */
  push(bytes: Uint8Array): boolean {
    this.output(bytes);
    return true;
  }

  /** The library ends itself when the far end breaks a rule. */
  end(): this {
    return this.destroy();
  }

  destroy(): this {
    this.#rejected = true;
    this._parse(Infinity, ignore);
    return this;
  }

  override _onHandshakeBuffer(bytes: Uint8Array): void {
    // In an encrypted handshake the initial payload may hold more than the handshake; the library drops the rest.
    if (bytes.length > HANDSHAKE_TAIL_BYTES) this.#surplus = bytes.slice(HANDSHAKE_TAIL_BYTES);
    super._onHandshakeBuffer(bytes.subarray(0, HANDSHAKE_TAIL_BYTES));
    // We frame messages ourselves: the remaining bytes wait in the buffer for `takeRest`.
    this._parse(Infinity, ignore);
  }

  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      throw new MillraceError("protocol_violation", "the peer sent something that the wire protocol does not allow", {
        cause: error,
      });
    }
    if (this.#rejected) throw new MillraceError("protocol_violation", "the peer broke the wire protocol");
  }
}
