/**
 * One player's MPEG TS of a broadcast: a place in the window and the splices made so far. It waits at the edge, skips
 * gaps to the next random access point, and begins again near the edge when the window has moved past it.
 */
import { concatBytes } from "../../bytes/hex.ts";
import { abortError, hasCode } from "../../errors.ts";
import { TsSplicer } from "../../bytes/ts/splice.ts";
import type { LivePoint } from "./live-scan.ts";
import type { LiveStream } from "./live-stream.ts";

/** Most packets handed out at a time, just under 64 KiB: as much as a player that does not read holds up. */
const CHUNK_PACKETS = 348;

/** Reads one player's stream out of the shared window. */
export class LiveReader {
  readonly #stream: LiveStream;
  readonly #splicer: TsSplicer;
  /** Packet read next; null: at a random access point that is still to be chosen. */
  #next: number | null = null;
  /** Packet where the present stretch began. */
  #entered = 0;
  #wanted: LivePoint | null = null;

  /**
   * Begins at `start`, or where new readers do. `splicer` appends its stretches to the output that it has made before.
   */
  constructor(stream: LiveStream, start: LivePoint | null = null, splicer: TsSplicer = new TsSplicer()) {
    this.#stream = stream;
    this.#splicer = splicer;
    this.#wanted = start;
  }

  /** Number of the packet that is read next; null before the start. */
  get position(): number | null {
    return this.#wanted?.packet ?? this.#next;
  }

  /** Continues at `point`; null: near the edge. */
  seek(point: LivePoint | null): void {
    this.#wanted = point ?? this.#stream.startPoint();
    this.#stream.wake();
  }

  /** The bytes, until the broadcast ends. */
  async *read(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for (;;) {
      const bytes = await this.#take();
      if (bytes !== null && bytes.length > 0) yield bytes;
      else if (bytes === null) {
        if (this.#stream.ended) return;
        await this.#stream.grown(signal);
      }
      if (signal.aborted) throw abortError(signal);
    }
  }

  /** What can be handed out now; null: nothing before the window grows. */
  async #take(): Promise<Uint8Array | null> {
    const point = this.#turn();
    if (point === "wait") return null;
    const tables = point === null ? null : this.#enter(point);
    const { window } = this.#stream;
    const from = this.#next!;
    const until = this.#stream.readableEnd(this.#entered);
    const count = Math.min(CHUNK_PACKETS, until - from);
    if (count <= 0) return tables;
    const packets = await window.packets(from, count).catch((error) => {
      // The window moved on while the disk was read: turn() will see it.
      if (hasCode(error, "not_found")) return null;
      throw error;
    });
    if (packets === null) return tables;
    const bytes = this.#splicer.push(packets);
    this.#next = from + count;
    return tables === null ? bytes : concatBytes([tables, bytes]);
  }

  /** Where a new stretch begins now; null: the present one continues; "wait": there is no such place yet. */
  #turn(): LivePoint | null | "wait" {
    const stream = this.#stream;
    const wanted = this.#wanted;
    this.#wanted = null;
    if (wanted !== null && wanted.packet >= stream.window.base) return wanted;
    if (this.#next === null || this.#next < stream.window.base) return stream.startPoint() ?? "wait";
    const end = stream.runEnd(this.#entered);
    if (end === null || this.#next < stream.readableEnd(this.#entered)) return null;
    // After a gap: the next place where a decoder can start.
    return stream.pointFrom(end) ?? "wait";
  }

  #enter(point: LivePoint): Uint8Array {
    const { pcrPid, streams } = point.program.map;
    this.#next = this.#entered = point.packet;
    return this.#splicer.enter({ tables: point.tables, pcrPid, streamPids: streams.map(({ pid }) => pid) });
  }
}
