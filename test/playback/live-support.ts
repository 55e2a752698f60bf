/** A broadcast in this process: a clip in a loop, cut, signed and published on a node that players read from. */
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { SequenceAllocator } from "../../src/live/broadcast/broadcast-state.ts";
import { LiveNode } from "../../src/live/node/live-node.ts";
import { NodeSupply } from "../../src/live/swarm/node-supply.ts";
import type { LiveSource, LiveStatus, LiveSwarms, LiveTarget } from "../../src/live/swarm/live-source.ts";
import type { Lease } from "../../src/swarm/leases.ts";
import type { MemberFigures } from "../../src/live/swarm/member-figures.ts";
import { Publisher } from "../../src/live/broadcast/publisher.ts";
import { createLiveKey, CryptoVerifier, HeaderSigner } from "../../src/live/signer.ts";
import type { Clock } from "../../src/ports.ts";
import { TsLooper } from "../../src/inputs/ts-looper.ts";
import { createLiveTransportFile, type LiveMetainfo } from "../../src/metainfo/live.ts";
import { collect, fixture, NEVER, openBytes } from "../media/support/files.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { MemorySource } from "../support/memory-source.ts";
import { clip } from "../support/fixtures.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { sha256 } from "../../platform/shared/digests.ts";
import { ed25519 } from "../../platform/shared/signatures.ts";

/** Source data comes in steps of this, ms. */
const STEP_MS = 100;

/** What a studio sends. */
export interface Media {
  /** The bytes due after `ms` more. */
  next(ms: number): Uint8Array;
}

/** H.264 with AAC in English and AC-3 in German, as a broadcast sends it, and how long it lasts. */
export async function twoSounds(): Promise<{ clip: Uint8Array; durationS: number }> {
  const bytes = fixture("mkv-two-audio.mkv");
  const { ts, durationMs } = await openBytes(bytes);
  const clip = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
  return { clip, durationS: durationMs! / 1000 };
}

/** A clip that never ends, at the pace of its own bitrate. */
export class EndlessClip implements Media {
  readonly #packets: Uint8Array;
  readonly #looper = new TsLooper();
  readonly #bytesPerMs: number;
  #at = 0;
  #due = 0;

  /** `from`: name of a clip, or its bytes; `durationS`: of one pass. */
  constructor(from: string | Uint8Array = "ts-188.ts", durationS = 6) {
    this.#packets = typeof from === "string" ? clip(from) : from;
    this.#bytesPerMs = this.#packets.length / durationS / 1000;
  }

  /** The bytes due after `ms` more. */
  next(ms: number): Uint8Array {
    this.#due += ms * this.#bytesPerMs;
    const parts: Uint8Array[] = [];
    while (this.#due >= PACKET_BYTES) {
      const count = Math.floor(Math.min(this.#due, this.#packets.length - this.#at) / PACKET_BYTES);
      parts.push(this.#looper.push(this.#packets.slice(this.#at, this.#at + count * PACKET_BYTES)).slice());
      this.#at += count * PACKET_BYTES;
      this.#due -= count * PACKET_BYTES;
      if (this.#at + PACKET_BYTES > this.#packets.length) {
        this.#at = 0;
        parts.push(this.#looper.endPass());
      }
    }
    return concatBytes(parts);
  }
}

/** A broadcast without a network, for playback tests. */
export class Studio implements LiveSource {
  readonly metainfo: LiveMetainfo;
  readonly transportFile: Uint8Array;
  readonly node: LiveNode;
  readonly supply: NodeSupply;
  readonly clock: Clock;
  readonly publisher: Publisher;
  /** While true, pieces are lost on the way to the node. */
  losing = false;
  peers = 3;
  readonly swarm = new AbortController();
  readonly ending = this.swarm.signal;
  readonly #listeners = new Set<() => void>();
  readonly #media: Media;

  private constructor(
    parts: {
      clock: Clock;
      metainfo: LiveMetainfo;
      transportFile: Uint8Array;
      verifier: CryptoVerifier;
      signer: HeaderSigner;
      sequence: SequenceAllocator;
      media: Media;
    },
  ) {
    this.clock = parts.clock;
    this.metainfo = parts.metainfo;
    this.transportFile = parts.transportFile;
    this.#media = parts.media;
    this.node = new LiveNode({
      clock: parts.clock,
      verifier: parts.verifier,
      random: () => 0.5,
      role: "source",
      stream: parts.metainfo,
      uplinkBytesPerS: null,
      onPiece: () => {
        for (const listener of [...this.#listeners]) listener();
      },
    });
    this.supply = new NodeSupply(this.node);
    this.publisher = new Publisher({
      clock: parts.clock,
      signer: parts.signer,
      sha256,
      sequence: parts.sequence,
      pieceLengthBytes: parts.metainfo.pieceLengthBytes,
      continues: true,
      publish: (piece) => {
        if (!this.losing) this.node.publish(piece);
      },
    });
  }

  static async open(
    options: { clip?: string; durationS?: number; media?: Media; clock?: Clock; windowS?: number; name?: string } = {},
  ): Promise<Studio> {
    const key = await createLiveKey();
    const { bytes, metainfo } = await createLiveTransportFile({
      name: options.name ?? "channel",
      publicKey: key.publicKey,
      bytesPerS: 25_000,
      windowS: options.windowS ?? 60,
      pieceLengthBytes: 16384,
    });
    return new Studio({
      clock: options.clock ?? new FakeClock(),
      metainfo,
      transportFile: bytes,
      verifier: new CryptoVerifier(key.publicKey, metainfo.infohash, { sha256, ed25519 }),
      signer: await HeaderSigner.create(key.privateKey, metainfo.infohash),
      sequence: new SequenceAllocator({ ...key, epoch: 1, nextSeq: 0, timestampMs: 0 }, () => Promise.resolve()),
      media: options.media ?? new EndlessClip(options.clip, options.durationS),
    });
  }

  /** The source runs for `ms`. */
  async run(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      if (this.clock instanceof FakeClock) await this.clock.advanceAsync(STEP_MS);
      await this.publisher.push(this.#media.next(STEP_MS));
      this.node.tick();
    }
  }

  /** The source runs in real time until the signal fires. */
  async runRealTime(signal: AbortSignal): Promise<void> {
    let last = performance.now();
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, STEP_MS / 2));
      const now = performance.now();
      await this.publisher.push(this.#media.next(now - last));
      this.node.tick();
      last = now;
    }
  }

  /** Nothing comes for `ms`. */
  async silence(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      if (this.clock instanceof FakeClock) await this.clock.advanceAsync(STEP_MS);
      this.node.tick();
    }
  }

  status(): LiveStatus {
    return {
      peers: this.peers,
      downloadBytesPerSecond: 25_600,
      uploadBytesPerSecond: 1024,
      downloadedBytes: 5000,
      uploadedBytes: 70,
      message: null,
    };
  }

  members(): readonly MemberFigures[] {
    return [];
  }

  onPiece(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** Hands out one broadcast and counts the leases on it. */
export class FakeLiveSwarms implements LiveSwarms {
  leases = 0;
  readonly #source: LiveSource & { readonly metainfo: LiveMetainfo };

  constructor(source: LiveSource & { readonly metainfo: LiveMetainfo }) {
    this.#source = source;
  }

  running(infohashHex: string): LiveMetainfo | null {
    return this.leases > 0 && infohashHex === this.#source.metainfo.infohashHex ? this.#source.metainfo : null;
  }

  acquire(_target: LiveTarget): Lease<LiveSource> {
    this.leases++;
    let released = false;
    return {
      swarm: this.#source,
      release: () => {
        if (!released) this.leases--;
        released = true;
      },
    };
  }
}
