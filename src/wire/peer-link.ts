/**
 * One peer connection. During the handshakes all bytes go through the library (`Handshake`, `ControlWire`). Afterwards
 * messages are framed here, encrypted or not: blocks and the frequent small messages never leave our code
 * (`FrameReader`, `Outbox`), and the rest is passed to the library one message at a time.
 */
import { Bitfield } from "../bytes/bitfield.ts";
import type { PieceSizes } from "../bytes/piece-shape.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { SocketAddress, TcpConnection } from "../ports.ts";
import { ControlWire, type PeerFlags } from "./control-wire.ts";
import { type DontHaveExchange, installDontHave } from "./dont-have.ts";
import { ownHandshake } from "./extended-handshake.ts";
import { FrameReader, MessageId } from "./frame-reader.ts";
import { type HolePunchExchange, type HolePunchMessage, installHolePunch } from "./hole-punch.ts";
import { Handshake, inStage, lostConnection } from "./handshake.ts";
import { answerBytes, hashMessage, HashMessageId, type HashRequest } from "./hash-messages.ts";
import { DEFAULT_REQUEST_QUEUE_LIMIT, MAX_SEND_BACKLOG_BYTES } from "./limits.ts";
import { Inflow } from "./inflow.ts";
import { MessageAllowance } from "./message-allowance.ts";
import { MessageReceiver } from "./message-receiver.ts";
import { installLive, type LiveExchange } from "./live-exchange.ts";
import { installMetadata, type MetadataExchange } from "./metadata-exchange.ts";
import { encryptionOf, type LinkEnvironment, type LinkOwner, type LinkSettings } from "./options.ts";
import { Outbox } from "./outbox.ts";
import { installPeerExchange, type PeerExchange } from "./peer-exchange.ts";
import { hex20 } from "./peer-id.ts";
import { payloadBytes, rowsOf } from "./piece-messages.ts";
import { RequestLedger } from "./request-ledger.ts";
import type { PeerLink, PeerLinkHandlers } from "./types.ts";

const HANDSHAKE = 0;
const OPEN = 1;
const CLOSED = 2;

/** The `PeerLink` of both directions. */
export class WireLink implements PeerLink {
  readonly incoming: boolean;
  readonly counters = { downloadedPayloadBytes: 0, uploadedPayloadBytes: 0, receivedBytes: 0, sentBytes: 0 };
  lastReceivedMs: number;
  onDrain: (() => void) | null = null;

  #state = HANDSHAKE;
  readonly #connection: TcpConnection;
  readonly #environment: LinkEnvironment;
  readonly #owner: LinkOwner;
  readonly #wire: ControlWire;
  readonly #handshake: Handshake;
  readonly #outbox: Outbox;
  #handlers: PeerLinkHandlers | null = null;
  #receiver: MessageReceiver | null = null;
  #reader: FrameReader | null = null;
  #inflow: Inflow | null = null;
  readonly #allowance: MessageAllowance;
  #decipher: ((bytes: Uint8Array) => Uint8Array) | null = null;
  #metadataExchange: MetadataExchange | null = null;
  #peerExchange: PeerExchange | null = null;
  #holePunchExchange: HolePunchExchange | null = null;
  #liveExchange: LiveExchange | null = null;
  #dontHaveExchange: DontHaveExchange | null = null;
  #requests = new RequestLedger(DEFAULT_REQUEST_QUEUE_LIMIT);
  #handshakeSent = false;
  /** Our plaintext handshake is queued: messages a peer accepts before its own handshake can follow in the same packet. */
  #early = false;
  #pieceCount: number | null = null;
  #removeAbort: () => void = () => {};

  constructor(connection: TcpConnection, incoming: boolean, environment: LinkEnvironment, owner: LinkOwner) {
    this.#connection = connection;
    this.incoming = incoming;
    this.#environment = environment;
    this.#owner = owner;
    this.lastReceivedMs = environment.clock.monotonic();
    this.#allowance = new MessageAllowance(environment.clock);
    this.#wire = new ControlWire(incoming, encryptionOf(environment.encryption, incoming));
    this.#outbox = new Outbox(connection, () => this.#written());
    this.#wire.output = (bytes) => this.#outbox.raw(bytes, this.#state === HANDSHAKE);
    this.#handshake = new Handshake(this.#wire, {
      clock: environment.clock,
      timeoutMs: environment.handshakeTimeoutMs,
      requiresEncryption: environment.encryption === "require",
      candidates: () => owner.candidates(),
      resolve: (infohashHex) => this.#resolve(infohashHex),
      done: (result) => this.#established(result),
      failed: (error) => this.#finish(error),
    });
  }

  get remote(): SocketAddress {
    return this.#connection.remote;
  }

  get bufferedBytes(): number {
    return this.#connection.bufferedBytes + this.#outbox.pendingBytes;
  }

  get writtenBytes(): number {
    return this.#state === CLOSED ? Infinity : this.#outbox.sentBytes - this.#connection.bufferedBytes;
  }

  /** Opens the connection and begins; `infohashHex` is the torrent of an outgoing link, null for an incoming one. */
  start(infohashHex: string | null): void {
    this.#connection.open({
      data: (chunk) => this.#data(chunk),
      end: () => this.#finish(lostConnection(this.#state === HANDSHAKE, undefined)),
      drain: () => this.#state === OPEN && this.#guarded(() => this.onDrain?.()),
      close: (error) => this.#finish(lostConnection(this.#state === HANDSHAKE, error)),
    });
    const { signal } = this.#environment;
    if (signal !== undefined) {
      const onAbort = () => this.#finish(abortError(signal));
      if (signal.aborted) return onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      this.#removeAbort = () => signal.removeEventListener("abort", onAbort);
    }
    if (infohashHex === null) this.#handshake.startIncoming();
    else {
      const encrypted = encryptionOf(this.#environment.encryption, false) > 0;
      this.#handshake.startOutgoing(this.#resolve(infohashHex)!, encrypted);
      this.#early = !encrypted;
    }
  }

  // Sending.

  choke(): void {
    if (this.#state !== OPEN || this.#wire.amChoking) return;
    this.#wire.choke();
    const dropped = this.#requests.clear();
    // BEP 6: every request that won't be served is rejected; without it a choke drops them all (BEP 3).
    if (this.#wire.hasFast) {
      for (const { piece, offset, length } of dropped) this.#outbox.triple(MessageId.reject, piece, offset, length);
    }
  }

  unchoke(): void {
    if (this.#state === OPEN) this.#wire.unchoke();
  }

  interested(): void {
    if (this.#speaks) this.#wire.interested();
  }

  uninterested(): void {
    if (this.#speaks) this.#wire.uninterested();
  }

  bitfield(bytes: Uint8Array): void {
    // The caller's bits may change while the copy waits to be sent.
    if (this.#speaks) this.#wire.bitfield(new Uint8Array(bytes));
  }

  haveAll(): void {
    if (this.#state !== OPEN) return;
    if (this.#wire.hasFast) this.#wire.haveAll();
    else if (this.#pieceCount !== null) this.#wire.bitfield(Bitfield.allSet(this.#pieceCount).bytes);
  }

  haveNone(): void {
    // Without BEP 6 a peer without pieces sends nothing.
    if (this.#state === OPEN && this.#wire.hasFast) this.#wire.haveNone();
  }

  have(piece: number): void {
    if (this.#state === OPEN) this.#outbox.have(piece);
  }

  dontHave(piece: number): void {
    if (this.#state === OPEN) this.#dontHaveExchange?.send(piece);
  }

  request(piece: number, offset: number, length: number): void {
    if (this.#speaks) this.#outbox.triple(MessageId.request, piece, offset, length);
  }

  cancel(piece: number, offset: number, length: number): void {
    if (this.#speaks) this.#outbox.triple(MessageId.cancel, piece, offset, length);
  }

  reject(piece: number, offset: number, length: number): void {
    if (this.#state !== OPEN || !this.#requests.remove(piece, offset)) return;
    if (this.#wire.hasFast) this.#outbox.triple(MessageId.reject, piece, offset, length);
  }

  piece(piece: number, offset: number, data: Uint8Array): boolean {
    if (this.#state !== OPEN || !this.#requests.remove(piece, offset)) return true;
    this.counters.uploadedPayloadBytes += data.length;
    return this.#outbox.block(piece, offset, data);
  }

  pieces(piece: number, offset: number, messages: Uint8Array): boolean {
    let hasRoom = true;
    if (this.#state !== OPEN) return hasRoom;
    for (const row of rowsOf(messages, offset, (block) => this.#requests.remove(piece, block))) {
      this.counters.uploadedPayloadBytes += payloadBytes(row);
      hasRoom = this.#outbox.messages(row);
    }
    return hasRoom;
  }

  push(piece: number, offset: number, data: Uint8Array): boolean {
    if (this.#state !== OPEN || this.#liveExchange === null) return true;
    this.#requests.remove(piece, offset);
    this.counters.uploadedPayloadBytes += data.length;
    return this.#outbox.block(piece, offset, data);
  }

  sendHash(id: number, request: HashRequest, hashes?: Uint8Array): void {
    if (this.#state !== OPEN) return;
    if (id === HashMessageId.request) this.#allowance.expect(answerBytes(request));
    this.#outbox.messages(hashMessage(id, request, hashes));
  }

  sendHolePunch(message: HolePunchMessage): void {
    if (this.#state === OPEN) this.#holePunchExchange?.send(message);
  }

  sendLive(message: Uint8Array): void {
    if (this.#state === OPEN) this.#liveExchange?.send(message);
  }

  pause(): void {
    this.#inflow?.setPaused(true);
  }

  resume(): void {
    this.#inflow?.setPaused(false);
  }

  sendPeers(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void {
    if (this.#state === OPEN) this.#peerExchange?.send(added, dropped);
  }

  sendDhtPort(port: number): void {
    if (this.#state === OPEN) this.#wire.port(port);
  }

  fetchMetadata(): void {
    if (this.#state !== CLOSED) this.#metadataExchange?.fetch();
  }

  cancelMetadata(): void {
    this.#metadataExchange?.cancel();
  }

  get metadataBytes(): number {
    return this.#metadataExchange?.receivedBytes ?? 0;
  }

  setMetadata(infoBytes: Uint8Array): void {
    if (this.#state !== CLOSED) this.#metadataExchange?.serve(infoBytes, this.#handshakeSent);
  }

  setPieceCount(count: number, shape?: PieceSizes): void {
    this.#pieceCount = count;
    this.#reader?.setPieceCount(count);
    this.#allowance.setPieceCount(count);
    this.#receiver?.setPieceCount(count, shape ?? null);
  }

  keepAlive(): void {
    if (this.#state === OPEN) this.#wire.keepAlive();
  }

  close(error?: Error): void {
    if (this.#state === CLOSED) return;
    this.#outbox.flush();
    this.#finish(error ?? null);
  }

  get #speaks(): boolean {
    return this.#state === OPEN || (this.#early && this.#state === HANDSHAKE);
  }

  #data(chunk: Uint8Array): void {
    if (this.#state === CLOSED) return;
    this.counters.receivedBytes += chunk.length;
    this.lastReceivedMs = this.#environment.clock.monotonic();
    if (this.#state === OPEN) this.#read(this.#decipher === null ? chunk : this.#decipher(chunk));
    else this.#handshake.data(chunk);
  }

  #read(bytes: Uint8Array): void {
    this.#inflow!.read(bytes);
  }

  /** Runs code that may break a rule or call a handler; a throw ends only this link. */
  #guarded(step: () => void): void {
    try {
      step();
    } catch (error) {
      // Anything but a MillraceError is a bug of ours or of a handler; it must not take other peers down.
      this.#finish(
        error instanceof MillraceError
          ? error
          : new MillraceError("internal", "handling a peer's message failed", { cause: error }),
      );
    }
  }

  /** Calls a handler in a microtask about something that came up inside a method of the link. */
  #later(step: () => void): void {
    queueMicrotask(() => this.#state !== CLOSED && this.#guarded(step));
  }

  #resolve(infohashHex: string): LinkSettings | null {
    const resolved = this.#owner.resolve(this, infohashHex);
    if (resolved === null) return null;
    const { settings, handlers } = resolved;
    this.#handlers = handlers;
    this.#requests = new RequestLedger(settings.requestQueueLimit ?? DEFAULT_REQUEST_QUEUE_LIMIT);
    const { clock } = this.#environment;
    if (settings.metadata !== false) {
      this.#metadataExchange = installMetadata(this.#wire, {
        clock,
        infohashHex: hex20(settings.infohash),
        bufferedBytes: () => this.bufferedBytes,
        asked: (lengthBytes) => this.#allowance.expect(lengthBytes),
        received: (infoBytes) => this.#later(() => handlers.torrent?.metadata(infoBytes)),
        failed: (error) => this.#later(() => handlers.torrent?.metadataFailed(error)),
      });
    }
    if (settings.pex !== false) {
      this.#peerExchange = installPeerExchange(this.#wire, { clock, peers: (...peers) => handlers.peers(...peers) });
    }
    const live = settings.live ?? null;
    if (settings.meets === true) this.#holePunchExchange = installHolePunch(this.#wire, (m) => handlers.holePunch?.(m));
    if (live !== null) this.#liveExchange = installLive(this.#wire, (message) => handlers.live?.(message));
    this.#receiver = new MessageReceiver({
      wire: this.#wire,
      outbox: this.#outbox,
      requests: this.#requests,
      metadataExchange: this.#metadataExchange,
      counters: this.counters,
      handlers,
      live: live !== null,
      spend: (units) => {
        this.#allowance.spend(units);
        this.#inflow!.spend(units);
      },
    });
    this.#reader = new FrameReader(this.#receiver);
    this.#inflow = new Inflow(this.#connection, this.#reader, (step) => this.#guarded(step));
    // A broadcast's window moves on anyway: there is no need to report what falls out of it.
    if (live === null) this.#dontHaveExchange = installDontHave(this.#wire, (piece) => this.#receiver!.dontHave(piece));
    Object.assign(
      this.#wire.extendedHandshake,
      ownHandshake({
        clientName: settings.clientName ?? "millrace",
        requestQueueLimit: settings.requestQueueLimit ?? DEFAULT_REQUEST_QUEUE_LIMIT,
        listenPort: settings.listenPort ?? null,
        uploadOnly: settings.uploadOnly ?? false,
        remoteHost: this.#connection.remote.host,
        live,
      }),
    );
    if (settings.infoBytes != null) this.setMetadata(settings.infoBytes);
    return settings;
  }

  #established({ peerId, flags }: { peerId: Uint8Array; flags: PeerFlags }): void {
    this.#state = OPEN;
    this.#handshakeSent = flags.extended;
    const wire = this.#wire;
    const encrypted = wire.encrypted;
    if (encrypted) {
      this.#decipher = (bytes) => wire.decrypt(bytes);
      this.#outbox.cipher = (bytes) => wire.encrypt(bytes);
    }
    const rest = wire.takeRest();
    if (!flags.extended) this.#metadataExchange?.handshakeRead();
    this.#guarded(() => this.#handlers!.ready({ peerId, fast: wire.hasFast, dht: flags.dht, encrypted }));
    for (const bytes of rest) this.#read(bytes);
  }

  #written(): void {
    this.counters.sentBytes = this.#outbox.sentBytes;
    if (this.#connection.bufferedBytes > MAX_SEND_BACKLOG_BYTES) {
      this.#finish(new MillraceError("connection_failed", "the peer does not read what it requested"));
    }
  }

  /** Ends everything once; the handlers are called in a microtask, never from inside a method of the link. */
  #finish(error: Error | null): void {
    if (this.#state === CLOSED) return;
    const reason = this.#state === HANDSHAKE ? inStage(error, this.#handshake.stage) : error;
    this.#state = CLOSED;
    this.#handshake.close();
    this.#inflow?.close();
    this.#outbox.close();
    this.#wire.retire();
    this.#metadataExchange?.close();
    this.#requests.clear();
    this.#removeAbort();
    this.#connection.abort();
    queueMicrotask(() => {
      if (this.#handlers !== null) this.#handlers.close(reason);
      else this.#owner.orphaned(reason ?? new MillraceError("closed", "the link was closed in its handshake"));
    });
  }
}
