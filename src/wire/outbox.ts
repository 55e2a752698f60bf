/**
 * The data plane, sending: the small messages of one turn are gathered in one buffer and written at once in a
 * microtask; a block is written as its header (with any messages gathered before it) and its bytes, without a copy.
 */
import type { TcpConnection } from "../ports.ts";
import { MessageId } from "./frame-reader.ts";

/** Size of the gathering buffer, bytes: 240 requests. */
const SCRATCH_BYTES = 4096;

/** Messages up to this size are gathered; larger ones are written separately. */
const GATHER_BYTES = 1024;

/** Orders and gathers what one link sends. */
export class Outbox {
  /** Bytes given to the connection. */
  sentBytes = 0;
  /** Encrypts each frame as it is queued, when set. */
  cipher: ((bytes: Uint8Array) => Uint8Array) | null = null;
  readonly #connection: TcpConnection;
  readonly #onWritten: () => void;
  readonly #scratch = new Uint8Array(SCRATCH_BYTES);
  #filled = 0;
  #scheduled = false;
  #closed = false;

  /** `onWritten` is called after each write to the connection. */
  constructor(connection: TcpConnection, onWritten: () => void) {
    this.#connection = connection;
    this.#onWritten = onWritten;
  }

  /** Bytes gathered but not written yet. */
  get pendingBytes(): number {
    return this.#filled;
  }

  close(): void {
    this.#closed = true;
    this.#filled = 0;
  }

  /**
   * Queues bytes unchanged (the library has encrypted them); takes ownership. `apart`: in a write of their own, which over
   * uTP is a packet of its own (`UtpConnection`).
   */
  raw(bytes: Uint8Array, apart: boolean): void {
    if (this.#closed) return;
    if (apart || bytes.length > GATHER_BYTES) {
      this.flush();
      this.#write(bytes);
      return;
    }
    this.#scratch.set(bytes, this.#reserve(bytes.length));
  }

  /** `have` (BEP 3). */
  have(piece: number): void {
    const at = this.#frame(9, MessageId.have);
    this.#uint32(at + 5, piece);
    this.#seal(at, 9);
  }

  /** `request`, `cancel` (BEP 3) or `reject` (BEP 6). */
  triple(id: number, piece: number, offset: number, length: number): void {
    const at = this.#frame(17, id);
    this.#uint32(at + 5, piece);
    this.#uint32(at + 9, offset);
    this.#uint32(at + 13, length);
    this.#seal(at, 17);
  }

  /** `piece` (BEP 3); takes ownership of `data`. False when the connection asks us to wait until it drains. */
  block(piece: number, offset: number, data: Uint8Array): boolean {
    if (this.#closed) return true;
    const at = this.#frame(13, MessageId.piece);
    this.#uint32(at, 9 + data.length);
    this.#uint32(at + 5, piece);
    this.#uint32(at + 9, offset);
    this.#seal(at, 13);
    this.flush();
    return this.#write(this.cipher === null ? data : this.cipher(data));
  }

  /** Whole `piece` messages, as `block`; without a cipher the connection sends from this memory. */
  messages(bytes: Uint8Array): boolean {
    if (this.#closed) return true;
    this.flush();
    return this.#write(this.cipher === null ? bytes : this.cipher(bytes));
  }

  /** Writes the gathered messages to the connection now. */
  flush(): void {
    if (this.#closed) this.#filled = 0;
    if (this.#filled === 0) return;
    const bytes = this.#scratch.slice(0, this.#filled);
    this.#filled = 0;
    this.#write(bytes);
  }

  #write(bytes: Uint8Array): boolean {
    this.sentBytes += bytes.length;
    const room = this.#connection.write(bytes);
    this.#onWritten();
    return room;
  }

  #reserve(count: number): number {
    if (this.#filled + count > SCRATCH_BYTES) this.flush();
    const at = this.#filled;
    this.#filled = at + count;
    if (!this.#scheduled) {
      this.#scheduled = true;
      queueMicrotask(() => {
        this.#scheduled = false;
        this.flush();
      });
    }
    return at;
  }

  #frame(count: number, id: number): number {
    const at = this.#reserve(count);
    this.#uint32(at, count - 4);
    this.#scratch[at + 4] = id;
    return at;
  }

  #seal(at: number, count: number): void {
    if (this.cipher !== null) this.#scratch.set(this.cipher(this.#scratch.slice(at, at + count)), at);
  }

  #uint32(at: number, value: number): void {
    const scratch = this.#scratch;
    scratch[at] = value >>> 24;
    scratch[at + 1] = value >>> 16;
    scratch[at + 2] = value >>> 8;
    scratch[at + 3] = value;
  }
}
