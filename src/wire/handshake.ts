/** Performs the handshakes on an open connection: encryption (MSE) where wanted, then BEP 3. */
import { hasCode, MillraceError } from "../errors.ts";
import type { Clock, Timer } from "../ports.ts";
import type { ControlWire, PeerFlags } from "./control-wire.ts";
import { ENCRYPTION_TIMEOUT_MS, HANDSHAKE_TIMEOUT_MS, MAX_HANDSHAKE_BUFFER_BYTES } from "./limits.ts";
import type { LinkSettings } from "./options.ts";
import { hex20 } from "./peer-id.ts";

/** The stage of a handshake; `detail.stage` of the error when it fails there. */
export type HandshakeStage = "encryption" | "handshake";

/** The link, as its handshake sees it. */
export interface HandshakeHost {
  readonly clock: Clock;
  readonly timeoutMs: number | undefined;
  /** Links in plaintext are refused. */
  readonly requiresEncryption: boolean;
  /** Infohashes that an encrypted handshake may name. */
  candidates(): Iterable<string>;
  /** The torrent named by an incoming peer: prepares the wire for it, or returns null. Called once. */
  resolve(infohashHex: string): LinkSettings | null;
  /** Both sides are done. Called once, after which the handshake is over. */
  done(result: { peerId: Uint8Array; flags: PeerFlags }): void;
  failed(error: MillraceError): void;
}

/** True when `error` closed an outgoing link because the far end did not accept encryption: try again in plaintext. */
export function encryptionRefused(error: unknown): boolean {
  return error instanceof MillraceError && error.detail?.stage === "encryption" && !hasCode(error, "aborted") &&
    !hasCode(error, "closed");
}

/** The connection ended by itself; null when that is no fault. */
export function lostConnection(isShaking: boolean, cause: Error | undefined): MillraceError | null {
  if (!isShaking && cause === undefined) return null;
  return new MillraceError("connection_failed", isShaking ? "the peer hung up in its handshake" : "connection lost", {
    cause,
  });
}

/** `error`, with the stage in which it ended the handshake. */
export function inStage(error: Error | null, stage: HandshakeStage): Error | null {
  if (!(error instanceof MillraceError)) return error;
  const { code, message, cause, detail } = error;
  return new MillraceError(code, message, { cause, detail: { ...detail, stage } });
}

/** One connection's handshakes. */
export class Handshake {
  stage: HandshakeStage = "handshake";
  readonly #wire: ControlWire;
  readonly #host: HandshakeHost;
  #settings: LinkSettings | null = null;
  #result: { peerId: Uint8Array; flags: PeerFlags } | null = null;
  #sent = false;
  #over = false;
  readonly #timers: Timer[] = [];

  constructor(wire: ControlWire, host: HandshakeHost) {
    this.#wire = wire;
    this.#host = host;
    this.#deadline(host.timeoutMs ?? HANDSHAKE_TIMEOUT_MS, () => true);
    wire.on("handshake", (infohashHex, _peerIdHex, flags) => this.#theirs(infohashHex, flags));
  }

  /** Sends our handshake first. */
  startOutgoing(settings: LinkSettings, encrypted: boolean): void {
    this.#settings = settings;
    if (!encrypted) {
      this.#sendOurs();
      return;
    }
    this.stage = "encryption";
    this.#deadline(ENCRYPTION_TIMEOUT_MS, () => this.stage === "encryption");
    this.#wire.on("crypto-handshake", () => {
      this.stage = "handshake";
      this.#sendOurs();
    });
    this.#wire.startEncryption(hex20(settings.infohash));
  }

  /** Waits for the far end. */
  startIncoming(): void {
    this.#wire.on("crypto-infohash", (obfuscatedHex) => void this.#match(obfuscatedHex));
  }

  /** Bytes arrived; the chunk may be reused afterwards. */
  data(chunk: Uint8Array): void {
    this.#attempt(() => {
      if (this.#wire.bufferedBytes + chunk.length > MAX_HANDSHAKE_BUFFER_BYTES) {
        throw new MillraceError("protocol_violation", "handshake too long");
      }
      // Not `slice`: a chunk may be a Node Buffer, whose `slice` shares its memory.
      this.#wire.feedHandshake(new Uint8Array(chunk));
    });
  }

  close(): void {
    this.#over = true;
    for (const timer of this.#timers) timer.cancel();
  }

  #deadline(delayMs: number, applies: () => boolean): void {
    this.#timers.push(this.#host.clock.setTimeout(() => {
      if (!this.#over && applies()) this.#fail(new MillraceError("timeout", "the peer did not finish its handshake"));
    }, delayMs));
  }

  /** Runs a step of the library; its consequences are handled after the library has returned. */
  #attempt(step: () => void): void {
    if (this.#over) return;
    try {
      step();
    } catch (error) {
      this.#fail(
        error instanceof MillraceError
          ? error
          : new MillraceError("internal", "the peer handshake failed", { cause: error }),
      );
      return;
    }
    if (this.#result === null || this.#over) return;
    this.close();
    this.#host.done(this.#result);
  }

  #fail(error: MillraceError): void {
    this.close();
    this.#host.failed(error);
  }

  #sendOurs(): void {
    if (this.#sent) return;
    this.#sent = true;
    const { infohash, peerId, dht = false, fast = true, v2 = false } = this.#settings!;
    this.#wire.marksV2 = v2;
    this.#wire.handshake(infohash, peerId, { dht, fast });
  }

  #theirs(infohashHex: string, flags: PeerFlags): void {
    const peerId = this.#wire.peerIdBuffer;
    if (peerId === null || peerId.length !== 20 || infohashHex.length !== 40) {
      throw new MillraceError("protocol_violation", "malformed handshake");
    }
    if (this.#host.requiresEncryption && !this.#wire.encrypted) {
      throw new MillraceError("denied", "the peer does not encrypt");
    }
    this.#settings ??= this.#host.resolve(infohashHex);
    if (this.#settings === null) throw unknownTorrent();
    if (hex20(this.#settings.infohash) !== infohashHex) {
      throw new MillraceError("protocol_violation", "the peer's handshake named another torrent");
    }
    if (hex20(peerId) === hex20(this.#settings.peerId)) {
      throw new MillraceError("conflict", "connected to ourselves");
    }
    this.#result = { peerId: new Uint8Array(peerId), flags };
    this.#sendOurs();
  }

  async #match(obfuscatedHex: string): Promise<void> {
    let found: string | null = null;
    let mistake: unknown;
    try {
      found = await findInfohash(obfuscatedHex, this.#host.candidates());
    } catch (error) {
      mistake = error;
    }
    this.#attempt(() => {
      if (mistake !== undefined) throw mistake;
      this.#settings = found === null ? null : this.#host.resolve(found);
      if (this.#settings === null) throw unknownTorrent();
      this.#wire.resolveInfohash(found!);
    });
  }
}

function unknownTorrent(): MillraceError {
  return new MillraceError("connection_failed", "the peer asked for an unknown torrent");
}

/** The infohash whose SHA-1 with the prefix "req2" is the given one (MSE, step 3). */
async function findInfohash(obfuscatedHex: string, candidates: Iterable<string>): Promise<string | null> {
  const salted = new Uint8Array(24);
  new TextEncoder().encodeInto("req2", salted);
  for (const infohashHex of candidates) {
    for (let i = 0; i < 20; i++) salted[4 + i] = parseInt(infohashHex.slice(2 * i, 2 * i + 2), 16);
    const digest = await crypto.subtle.digest("SHA-1", salted);
    if (hex20(new Uint8Array(digest)) === obfuscatedHex) return infohashHex;
  }
  return null;
}
