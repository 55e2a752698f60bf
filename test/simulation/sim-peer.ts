/**
 * A remote peer on a modelled link: requests wait in its queue, move into a send buffer from which nothing can be
 * called back, leave at its uplink's rate in order, and arrive one latency later through the receiver's downlink.
 */
import type { EventQueue } from "./event-queue.ts";

/** How a peer is and behaves. Times are virtual milliseconds. */
export interface PeerProfile {
  /** Uplink, bytes/s. */
  readonly rate: number;
  readonly rttMs: number;
  /** Answer to a request; 250 is what common clients allow. Default 250. */
  readonly requestQueueLimit?: number;
  /** BEP 6. Default true. */
  readonly fast?: boolean;
  /** Bytes in the send buffer, beyond recall. Default half a second's worth, 32 to 256 KiB, as common clients keep. */
  readonly sendBufferBytes?: number;
  /** Its link hands over what it carried this much at a time, as relays and radio links do. Default: as it comes. */
  readonly lumpBytes?: number;
  /** Share of pieces it has, chosen by the seeded generator; 1 = seed (default). */
  readonly share?: number;
  /** Sends nothing from then on, connection open (SIGSTOP). */
  readonly freezeAtMs?: number;
  readonly thawAtMs?: number;
  /** Chokes for `offMs` after every `onMs`. */
  readonly choking?: { readonly onMs: number; readonly offMs: number };
  /** Its disk takes up to this long for a block, and blocks leave as they come from it: not in the order of requests. */
  readonly diskMs?: number;
  /** Looks at its requests only this often, as Transmission does, and then at all of them. */
  readonly periodMs?: number;
  /** Never answers a request. */
  readonly lying?: boolean;
  /** Never unchokes. */
  readonly deaf?: boolean;
  readonly leaveAtMs?: number;
  readonly joinAtMs?: number;
  /** Share of requests rejected. */
  readonly rejects?: number;
  /** Share of blocks that are corrupt. */
  readonly corrupts?: number;
  /** Pieces nobody shall claim. */
  readonly lacks?: (piece: number) => boolean;
}

/** What a peer does to the receiver. */
export interface PeerEvents {
  /** Payload bytes leave the link; the receiver's downlink delays them. */
  arrive(bytes: number, then: () => void): void;
  progress(bytes: number): void;
  block(piece: number, offset: number, length: number, corrupt: boolean): void;
  choke(): void;
  unchoke(): void;
  reject(piece: number, offset: number): void;
}

interface Pending {
  readonly piece: number;
  readonly offset: number;
  readonly length: number;
}

/** Payload is reported at least this finely, as a socket would; that of very slow links four times a second. */
const CHUNK_BYTES = 4096;
const CHUNK_S = 0.25;

export class SimPeer {
  readonly profile: PeerProfile;
  gone = false;
  readonly #queue: EventQueue;
  readonly #events: PeerEvents;
  readonly #random: () => number;
  readonly #waiting: Pending[] = [];
  readonly #committed: Pending[] = [];
  #committedBytes = 0;
  #sending = false;
  #choking = true;
  /** What the link has carried and not yet handed over. */
  #lump: { readonly bytes: number; readonly then: () => void }[] = [];
  #lumpBytes = 0;

  constructor(profile: PeerProfile, queue: EventQueue, events: PeerEvents, random: () => number) {
    this.profile = profile;
    this.#queue = queue;
    this.#events = events;
    this.#random = random;
  }

  get #oneWayMs(): number {
    return this.profile.rttMs / 2;
  }

  /** The receiver says it is interested: unchokes after a round trip, then chokes as its profile says. */
  start(): void {
    if (this.profile.thawAtMs !== undefined) this.#queue.at(this.profile.thawAtMs, () => this.#send());
    if (this.profile.deaf !== true) this.#queue.after(this.profile.rttMs, () => this.#setChoking(false));
    if (this.profile.periodMs !== undefined) this.#pulse(this.profile.periodMs);
  }

  #pulse(periodMs: number): void {
    if (this.gone) return;
    this.#commit((this.profile.rate * periodMs) / 1000);
    this.#send();
    this.#queue.after(periodMs, () => this.#pulse(periodMs));
  }

  #setChoking(value: boolean): void {
    if (this.gone || this.#frozen) return;
    this.#choking = value;
    const { choking, fast } = this.profile;
    if (value) {
      const dropped = this.#waiting.splice(0);
      this.#queue.after(this.#oneWayMs, () => {
        if (this.gone) return;
        this.#events.choke();
        if (fast !== false) { for (const p of dropped) this.#events.reject(p.piece, p.offset); }
      });
    } else this.#queue.after(this.#oneWayMs, () => !this.gone && this.#events.unchoke());
    if (choking !== undefined) {
      this.#queue.after(value ? choking.offMs : choking.onMs, () => this.#setChoking(!value));
    }
  }

  get #frozen(): boolean {
    const { freezeAtMs, thawAtMs } = this.profile;
    const now = this.#queue.nowMs;
    return freezeAtMs !== undefined && now >= freezeAtMs && (thawAtMs === undefined || now < thawAtMs);
  }

  request(piece: number, offset: number, length: number): void {
    this.#queue.after(this.#oneWayMs, () => {
      if (this.gone || this.profile.lying) return;
      const refused = this.#choking || (this.profile.rejects !== undefined && this.#random() < this.profile.rejects);
      if (refused) {
        if (this.profile.fast !== false) {
          this.#queue.after(this.#oneWayMs, () => !this.gone && this.#events.reject(piece, offset));
        }
        return;
      }
      const { diskMs } = this.profile;
      if (diskMs === undefined) return this.#ready({ piece, offset, length });
      this.#queue.after(this.#random() * diskMs, () => this.#ready({ piece, offset, length }));
    });
  }

  #ready(block: Pending): void {
    this.#waiting.push(block);
    this.#send();
  }

  cancel(piece: number, offset: number): void {
    this.#queue.after(this.#oneWayMs, () => {
      const at = this.#waiting.findIndex((p) => p.piece === piece && p.offset === offset);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      if (this.profile.fast !== false) {
        this.#queue.after(this.#oneWayMs, () => !this.gone && this.#events.reject(piece, offset));
      }
    });
  }

  #commit(limit: number): void {
    while (this.#waiting.length > 0 && (this.#committed.length === 0 || this.#committedBytes < limit)) {
      const next = this.#waiting.shift()!;
      this.#committed.push(next);
      this.#committedBytes += next.length;
    }
  }

  #send(): void {
    const { rate, periodMs, sendBufferBytes } = this.profile;
    if (periodMs === undefined) this.#commit(sendBufferBytes ?? Math.min(Math.max(rate / 2, 32_768), 262_144));
    if (this.#sending || this.#committed.length === 0 || this.#frozen || this.gone) return;
    this.#sending = true;
    this.#chunk(this.#committed[0]!, 0);
  }

  #chunk(block: Pending, sent: number): void {
    const { rate } = this.profile;
    const coarse = rate > 1_000_000 ? block.length : Math.min(CHUNK_BYTES, Math.ceil(rate * CHUNK_S));
    const bytes = Math.min(coarse, block.length - sent);
    this.#queue.after((bytes * 1000) / rate, () => {
      if (this.gone) return;
      if (this.#frozen) {
        this.#sending = false;
        return;
      }
      const last = sent + bytes >= block.length;
      const corrupt = last && this.profile.corrupts !== undefined && this.#random() < this.profile.corrupts;
      this.#carried(bytes, () => {
        if (this.gone) return;
        this.#events.progress(bytes);
        if (last) this.#events.block(block.piece, block.offset, block.length, corrupt);
      });
      if (!last) return this.#chunk(block, sent + bytes);
      this.#committed.shift();
      this.#committedBytes -= block.length;
      this.#sending = false;
      this.#send();
      if (!this.#sending) this.#handOver();
    });
  }

  #carried(bytes: number, then: () => void): void {
    this.#lump.push({ bytes, then });
    this.#lumpBytes += bytes;
    if (this.#lumpBytes >= (this.profile.lumpBytes ?? 0)) this.#handOver();
  }

  #handOver(): void {
    const lump = this.#lump;
    this.#lump = [];
    this.#lumpBytes = 0;
    for (const { bytes, then } of lump) this.#queue.after(this.#oneWayMs, () => this.#events.arrive(bytes, then));
  }
}
