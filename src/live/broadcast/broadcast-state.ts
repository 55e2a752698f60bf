/** What a broadcaster keeps on disk so that a restart continues under the same id. */
import { decodeBencode, encodeBencode, integerWithin, isDictionary } from "../../bytes/bencode.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import type { FilePort } from "../../ports.ts";
import { MAX_SEQUENCE } from "../header.ts";
import { UNSAVED_MS } from "./capture-clock.ts";
import type { LiveKey } from "../signer.ts";

/** Key and position of a broadcast. */
export interface BroadcastState extends LiveKey {
  readonly epoch: number;
  /** Next sequence number that is certainly unused. */
  readonly nextSeq: number;
  /** A capture time that was used, Unix ms: later pieces must be above it. 0 before the first piece. */
  readonly timestampMs: number;
}

/**
 * Sequence numbers reserved by one write, so that not every piece waits for the disk: after a crash at most this many
 * are skipped.
 */
export const RESERVED_PIECES = 16;

const VERSION = 1;
/** The file has about 200 bytes. */
const MAX_STATE_BYTES = 4096;
const PRIVATE_MODE = 0o600;

/** Reads the state; null when there is none. Rejects with `corrupt` when it is damaged. */
export async function readBroadcastState(files: FilePort, path: string): Promise<BroadcastState | null> {
  let bytes: Uint8Array;
  try {
    bytes = await files.readFile(path, { maxBytes: MAX_STATE_BYTES });
  } catch (error) {
    if (hasCode(error, "not_found")) return null;
    throw error;
  }
  const state = decodeBencode(bytes, { errorCode: "corrupt", maxDepth: 2, maxValues: 32 });
  const fail = () =>
    new MillraceError("corrupt", `the broadcast state ${path} is damaged; restore it or start a new one`);
  if (!isDictionary(state) || state["v"] !== VERSION) throw fail();
  const { key, public: publicKey } = state;
  const epoch = integerWithin(state["epoch"], 0, 0xffffffff);
  const nextSeq = integerWithin(state["next"], 0, MAX_SEQUENCE + 1);
  if (!(key instanceof Uint8Array) || !(publicKey instanceof Uint8Array) || publicKey.length !== 32) throw fail();
  // Earlier versions kept no capture time.
  const timestampMs = integerWithin(state["time"] ?? 0, 0, Number.MAX_SAFE_INTEGER);
  if (epoch === null || nextSeq === null || timestampMs === null) throw fail();
  return { privateKey: key, publicKey, epoch, nextSeq, timestampMs };
}

/** Writes the state in one step, readable by its owner alone. */
export async function writeBroadcastState(files: FilePort, path: string, state: BroadcastState): Promise<void> {
  const bytes = encodeBencode({
    epoch: state.epoch,
    key: state.privateKey,
    next: state.nextSeq,
    public: state.publicKey,
    time: state.timestampMs,
    v: VERSION,
  });
  await files.writeFile(path, bytes, { mode: PRIVATE_MODE });
}

/**
 * The state with which a broadcast goes on although its last positions may not have been saved: in a higher epoch, so that
 * no number comes twice. Epochs begin with the time of the first start.
 */
export function inNewEpoch(state: BroadcastState, nowMs: number): BroadcastState {
  const nowS = Math.min(0xffffffff, Math.floor(nowMs / 1000));
  return { ...state, epoch: Math.max(state.epoch + 1, nowS), nextSeq: 0 };
}

/** Hands out sequence numbers that were never used before, also after a crash. */
export class SequenceAllocator {
  readonly #save: (state: BroadcastState) => Promise<void>;
  #state: BroadcastState;
  #next: number;
  #lastMs: number;

  /** `save` persists a state. */
  constructor(state: BroadcastState, save: (state: BroadcastState) => Promise<void>) {
    this.#state = state;
    this.#next = state.nextSeq;
    this.#lastMs = state.timestampMs;
    this.#save = save;
  }

  /** The capture time that is on disk, Unix ms: less than `UNSAVED_MS` before the newest. */
  get savedMs(): number {
    return this.#state.timestampMs;
  }

  /** Current epoch. */
  get epoch(): number {
    return this.#state.epoch;
  }

  /**
   * The number and epoch of the piece captured at `timestampMs`. When the numbers are used up, after 2^31 pieces, a new
   * epoch begins at 0. Rejects when the state can't be written: an unsaved number could come twice.
   */
  async take(timestampMs: number): Promise<{ epoch: number; seq: number }> {
    this.#lastMs = timestampMs;
    if (this.#next > MAX_SEQUENCE) await this.#write({ ...this.#state, epoch: this.#state.epoch + 1, nextSeq: 0 }, 0);
    if (this.#next >= this.#state.nextSeq || timestampMs - this.#state.timestampMs >= UNSAVED_MS) {
      await this.#write(
        { ...this.#state, nextSeq: Math.min(this.#next + RESERVED_PIECES, MAX_SEQUENCE + 1) },
        this.#next,
      );
    }
    return { epoch: this.#state.epoch, seq: this.#next++ };
  }

  /** Gives the reserved numbers back, at an orderly end. */
  async close(): Promise<void> {
    await this.#write({ ...this.#state, nextSeq: this.#next }, this.#next);
  }

  async #write(state: BroadcastState, next: number): Promise<void> {
    const saved = { ...state, timestampMs: this.#lastMs };
    await this.#save(saved);
    this.#state = saved;
    this.#next = next;
  }
}
