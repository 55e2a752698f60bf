/** A broadcaster: turns its input into signed pieces for a swarm, and continues after a restart. */
import { deadline, withSignal } from "../../bytes/deadline.ts";
import { faultFields } from "../../bytes/guarded-clock.ts";
import { MillraceError } from "../../errors.ts";
import type { Digest, FilePort, Logger, Timer } from "../../ports.ts";
import { contentId } from "../../metainfo/content-id.ts";
import { createLiveTransportFile, type LiveMetainfo, magnetLink } from "../../metainfo/live.ts";
import { probeBitrate, type TimedEvent } from "./bitrate-probe.ts";
import { BroadcastFiles, identityConflict } from "./broadcast-files.ts";
import { type BroadcastState, SequenceAllocator } from "./broadcast-state.ts";
import type { Broadcast, BroadcastOptions, BroadcastStatus } from "./broadcast-types.ts";
import type { LiveInputEvent } from "./input.ts";
import type { Lease } from "../../swarm/leases.ts";
import type { LiveSwarm } from "../swarm/live-swarm.ts";
import type { LiveSwarmManager } from "../swarm/live-swarms.ts";
import { Publisher } from "./publisher.ts";
import { RateWatch } from "./rate-watch.ts";
import { streamShape } from "./stream-shape.ts";
import { createLiveKey, HeaderSigner } from "../signer.ts";

/** A source that delivers nothing for this long at the first start is given up, ms. */
const FIRST_DATA_MS = 60_000;
/** Viewers' addresses are saved this often, ms. */
const SAVE_VIEWERS_MS = 5_000;
/**
 * A broadcast joins its swarm again no more often than this, ms: a fault may come again at once. Each time that a swarm did
 * not last, the pause is doubled, up to the last.
 */
const REJOIN_MS = 5_000;
const LAST_REJOIN_MS = 300_000;
/** A swarm that lasted for this long, ms, ended by another fault. */
const LASTED_MS = 600_000;
/** Time for the input to release what it holds, ms. */
const INPUT_CLOSE_MS = 1_000;

/** What a broadcast needs. */
export interface BroadcastParts {
  readonly files: FilePort;
  readonly log: Logger;
  readonly sha256: Digest;
  readonly swarms: LiveSwarmManager;
  readonly clock: ConstructorParameters<typeof Publisher>[0]["clock"];
  /** Called once the broadcast is closed. */
  readonly closed?: () => void;
}

/**
 * Starts a broadcast; `engine.broadcast`. Rejects with `conflict` (the directory holds another broadcast, or it is being
 * watched here), `corrupt` (the state is damaged), `timeout` (the source delivers nothing), `bad_transport_file` (a value
 * out of range), or as the input and the file system do.
 */
export async function startBroadcast(parts: BroadcastParts, options: BroadcastOptions): Promise<Broadcast> {
  const input = options.input[Symbol.asyncIterator]();
  try {
    const files = new BroadcastFiles(parts.files, options.directory, parts.log);
    const earlier = await files.readState(parts.clock.now());
    const state = earlier ?? await newState(parts);
    const kept = await files.readMetainfo();
    const known = options.bytesPerS ?? kept?.bytesPerS;
    const probe = known === undefined ? await probed(parts, input, options.signal) : { bytesPerS: known, events: [] };
    const shape = kept ?? streamShape(probe.bytesPerS);
    const { bytes, metainfo } = await createLiveTransportFile({
      name: options.name,
      publicKey: state.publicKey,
      bytesPerS: probe.bytesPerS,
      pieceLengthBytes: options.pieceLengthBytes ?? shape.pieceLengthBytes,
      substreams: shape.substreams,
      windowS: options.windowS ?? kept?.windowS ?? 60,
      trackers: options.trackers ?? [],
      nodes: options.nodes ?? [],
      isPrivate: options.isPrivate ?? kept?.isPrivate ?? false,
    });
    if (kept !== null && kept.infohashHex !== metainfo.infohashHex) throw identityConflict(kept, metainfo);
    const signer = await HeaderSigner.create(state.privateKey, metainfo.infohash);
    await files.writeState(state);
    await files.writeTransportFile(bytes);
    const { uploadLimitBytesPerSecond = 0 } = options;
    const lease = parts.swarms.broadcast(metainfo, signer, uploadLimitBytesPerSecond);
    for (const address of await files.readViewers()) lease.swarm.peers.adopt(address, "manual");
    const identity = { metainfo, transportFile: bytes, contentId: await contentId(metainfo) };
    const isFirst = (earlier?.timestampMs ?? 0) === 0;
    const running = {
      files,
      state,
      isFirst,
      signer,
      lease,
      uploadLimitBytesPerSecond,
      input,
      identity,
      early: [...probe.events],
    };
    return new RunningBroadcast(parts, running);
  } catch (error) {
    void letGo(input);
    throw error;
  }
}

/** Ends `input`; resolves when it has released what it held. */
async function letGo(input: AsyncIterator<LiveInputEvent>): Promise<void> {
  try {
    await input.return?.();
  } catch {
    // It is given up either way.
  }
}

/** A new key. The epoch grows with time, so viewers believe a broadcaster that lost its position but not its key. */
async function newState(parts: BroadcastParts): Promise<BroadcastState> {
  return { ...await createLiveKey(), epoch: Math.floor(parts.clock.now() / 1000), nextSeq: 0, timestampMs: 0 };
}

async function probed(parts: BroadcastParts, input: AsyncIterator<LiveInputEvent>, signal: AbortSignal | undefined) {
  const late = deadline(
    parts.clock,
    FIRST_DATA_MS,
    signal,
    () => new MillraceError("timeout", "the source delivers nothing: check it, or name its bitrate"),
  );
  try {
    return await probeBitrate(input, parts.clock, late.signal);
  } finally {
    late.cancel();
  }
}

interface Running {
  readonly files: BroadcastFiles;
  readonly state: BroadcastState;
  /** Nothing of it was ever sent. */
  readonly isFirst: boolean;
  readonly signer: HeaderSigner;
  readonly lease: Lease<LiveSwarm>;
  readonly uploadLimitBytesPerSecond: number;
  readonly input: AsyncIterator<LiveInputEvent>;
  readonly identity: Pick<Broadcast, "metainfo" | "transportFile" | "contentId">;
  /** Read while the bitrate was measured: up to 16 MiB, let go as they are sent. */
  readonly early: TimedEvent[];
}

class RunningBroadcast implements Broadcast {
  readonly metainfo: LiveMetainfo;
  readonly contentId: string;
  readonly magnet: string;
  readonly transportFile: Uint8Array;
  readonly done: Promise<void>;
  readonly #parts: BroadcastParts;
  readonly #running: Running;
  readonly #publisher: Publisher;
  readonly #sequence: SequenceAllocator;
  readonly #rate: RateWatch;
  readonly #stopping = new AbortController();
  /** Replaced when a fault of the engine ended its swarm. */
  #lease: Lease<LiveSwarm>;
  #rejoinedMs = -Infinity;
  #rejoinAfterMs = REJOIN_MS;
  #headSeq = -1;
  #lost: string | null = null;
  #timer: Timer;
  #saving: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(parts: BroadcastParts, running: Running) {
    const { identity, state, lease, files } = running;
    this.#lease = lease;
    this.#parts = parts;
    this.#running = running;
    this.metainfo = identity.metainfo;
    this.contentId = identity.contentId;
    this.transportFile = identity.transportFile;
    this.magnet = magnetLink(this.metainfo);
    this.#sequence = new SequenceAllocator(state, (next) => files.keepState(next));
    this.#publisher = new Publisher({
      clock: parts.clock,
      signer: running.signer,
      sha256: parts.sha256,
      sequence: this.#sequence,
      pieceLengthBytes: this.metainfo.pieceLengthBytes,
      continues: running.isFirst,
      startMs: running.early[0]?.atMs,
      publish: (piece) => {
        this.#headSeq = piece.header.seq;
        this.#rejoin();
        this.#lease.swarm.node.publish(piece);
      },
    });
    this.#rate = new RateWatch(this.metainfo.bytesPerS, (message) => parts.log.log("warn", message));
    this.#timer = this.#saveViewersLater();
    this.done = this.#run();
    this.done.catch((error) => {
      const fields = error instanceof MillraceError ? { error: error.message } : faultFields(error);
      parts.log.log("error", "a broadcast failed", fields);
    });
  }

  status(): BroadcastStatus {
    const swarm = this.#lease.swarm.status();
    return {
      ...swarm,
      message: this.#waiting ?? swarm.message ?? this.#rate.trouble,
      inputBytesPerSecond: this.#publisher.bytesPerS,
      headSeq: this.#headSeq,
      droppedBytes: this.#publisher.droppedBytes,
      lost: this.#lost,
    };
  }

  /** Why viewers wait, while a fault of the engine has ended the swarm and it is too early to join again. */
  get #waiting(): string | null {
    if (!this.#lease.swarm.ending.aborted || this.#closing !== null) return null;
    const inMs = Math.max(0, this.#rejoinedMs + this.#rejoinAfterMs - this.#parts.clock.monotonic());
    return `a fault of the engine ended its swarm; it joins again in ${Math.ceil(inMs / 1000)} s`;
  }

  close(): Promise<void> {
    return this.#closing ??= this.#end();
  }

  async #run(): Promise<void> {
    const { input, early } = this.#running;
    const { signal } = this.#stopping;
    try {
      // With the time of the start instead, three seconds in one burst would make the stream seem half again as fast.
      for (let first = early.shift(); first !== undefined; first = early.shift()) {
        await this.#take(first.event, first.atMs);
      }
      for (;;) {
        const next = await withSignal(input.next(), signal);
        if (next.done === true) return await this.#publisher.end();
        await this.#take(next.value, this.#parts.clock.monotonic());
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      // Viewers wait for a broadcaster that was stopped; the numbers that it had reserved are given back.
      await this.#sequence.close();
    }
  }

  async #take(event: LiveInputEvent, atMs: number): Promise<void> {
    if (event.kind === "data") {
      this.#lost = null;
      await this.#publisher.push(event.bytes, atMs);
      return this.#rate.look(this.#publisher.bytesPerS, this.#parts.clock.monotonic());
    }
    this.#lost = event.reason;
    this.#parts.log.log("warn", "the source of a broadcast was lost", { reason: event.reason });
    await this.#publisher.sourceLost();
  }

  async #end(): Promise<void> {
    this.#timer.cancel();
    this.#stopping.abort();
    await this.done.catch(() => {});
    const late = deadline(this.#parts.clock, INPUT_CLOSE_MS);
    const gaveUp = new Promise<void>((resolve) => late.signal.addEventListener("abort", () => resolve()));
    await Promise.race([letGo(this.#running.input), gaveUp]);
    late.cancel();
    await this.#saving;
    await this.#saveViewers();
    this.#lease.release();
    this.#parts.closed?.();
  }

  /**
   * Joins again under the same id when a fault of the engine ended the swarm: numbers go on, and viewers come back. A
   * fault that comes again at once brings it back ever less often.
   */
  #rejoin(): void {
    const { ending, peers } = this.#lease.swarm;
    const nowMs = this.#parts.clock.monotonic();
    if (!ending.aborted || this.#closing !== null || nowMs - this.#rejoinedMs < this.#rejoinAfterMs) return;
    const hasLasted = nowMs - this.#rejoinedMs >= LASTED_MS;
    this.#rejoinAfterMs = hasLasted ? REJOIN_MS : Math.min(LAST_REJOIN_MS, 2 * this.#rejoinAfterMs);
    this.#rejoinedMs = nowMs;
    const { signer, uploadLimitBytesPerSecond } = this.#running;
    const addresses = peers.book.list();
    try {
      this.#lease = this.#parts.swarms.broadcast(this.metainfo, signer, uploadLimitBytesPerSecond);
    } catch (error) {
      return this.#parts.log.log("warn", "a broadcast could not join its swarm again", { error: String(error) });
    }
    for (const { address } of addresses) this.#lease.swarm.peers.adopt(address, "manual");
    this.#parts.log.log("warn", "a broadcast joined its swarm again", { infohash: this.metainfo.infohashHex });
  }

  #saveViewersLater(): Timer {
    return this.#parts.clock.setTimeout(() => {
      // Start the next save only once this one is on disk: on a drive that hangs they would pile up.
      this.#saving = this.#saveViewers().then(() => {
        if (this.#closing === null) this.#timer = this.#saveViewersLater();
      });
    }, SAVE_VIEWERS_MS);
  }

  async #saveViewers(): Promise<void> {
    const { files } = this.#running;
    await files.writeViewers(this.#lease.swarm.peers.memberAddresses()).catch((error) => {
      this.#parts.log.log("warn", "the viewers' addresses were not saved", { error: String(error) });
    });
  }
}
