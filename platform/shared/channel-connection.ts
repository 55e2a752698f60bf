/** A data channel of WebRTC as a stream of bytes. */
import { Buffer } from "node:buffer";
import type { SocketAddress } from "../../src/ports.ts";
import { QueuedTcpConnection } from "./tcp-connection.ts";

type Peer = InstanceType<typeof import("werift").RTCPeerConnection>;
type Channel = ReturnType<Peer["createDataChannel"]>;

/** Largest message, bytes: RFC 8831, section 6.6. */
const MESSAGE_BYTES = 16 * 1024;

/** What the library may hold unsent, bytes. */
const UNSENT_BYTES = 64 * 1024;

/** What may come while nobody reads, bytes. A channel cannot be slowed down, so that a peer that sends more is dropped. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** The open `channel` of `peer`. */
export class ChannelConnection extends QueuedTcpConnection {
  readonly #channel: Channel;
  readonly #peer: Peer;
  #isPaused = true;
  #unread: Uint8Array[] = [];
  #unreadBytes = 0;

  constructor(channel: Channel, peer: Peer) {
    super(...addressesOf(peer));
    this.#channel = channel;
    this.#peer = peer;
    channel.bufferedAmountLowThreshold = UNSENT_BYTES / 2;
    channel.onMessage.subscribe((data) => {
      if (typeof data !== "string") this.#receive(data);
    });
    channel.stateChanged.subscribe((state) => {
      if (state === "closed" || state === "closing") this.finish();
    });
    peer.connectionStateChange.subscribe((state) => {
      if (state === "failed" || state === "closed" || state === "disconnected") this.finish();
    });
  }

  protected startReading(): void {
    this.resume();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused && this.#unread.length > 0) {
      const chunk = this.#unread.shift()!;
      this.#unreadBytes -= chunk.length;
      this.handlers?.data(chunk);
    }
  }

  protected transmit(): void {
    const message = Buffer.alloc(Math.min(this.queue.bytes, MESSAGE_BYTES));
    this.queue.fill(message);
    this.sending(message.length);
    this.#channel.send(message);
    const sent = () => this.sent(message.length, true);
    if (this.#channel.bufferedAmount <= UNSENT_BYTES) queueMicrotask(sent);
    else this.#channel.bufferedAmountLow.once(sent);
  }

  protected shutWrite(): void {
    this.#channel.close();
  }

  protected destroy(): void {
    void this.#peer.close().catch(() => {});
  }

  #receive(data: Uint8Array): void {
    if (this.closed) return;
    if (!this.#isPaused) return void this.handlers?.data(data);
    this.#unread.push(data);
    this.#unreadBytes += data.length;
    if (this.#unreadBytes > MAX_UNREAD_BYTES) this.abort();
  }
}

/** Ours and the other side's, of the pair of candidates in use. */
function addressesOf(peer: Peer): [local: SocketAddress, remote: SocketAddress] {
  const pair = peer.iceTransports[0]?.connection.nominated;
  const [host, port] = pair?.remoteAddr ?? ["0.0.0.0", 0];
  return [{ host: pair?.localCandidate.host ?? "0.0.0.0", port: pair?.localCandidate.port ?? 0 }, { host, port }];
}
