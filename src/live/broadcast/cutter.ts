/** Cuts a transport stream into the pieces of a broadcast. */
import { concatBytes } from "../../bytes/hex.ts";
import { PACKET_BYTES, SYNC_BYTE } from "../../bytes/ts/packet.ts";
import { FLAG_DISCONTINUITY, FLAG_END, FLAG_RANDOM_ACCESS } from "../header.ts";
import { TsResync } from "../../bytes/ts/resync.ts";
import { TsWatch } from "../../bytes/ts/watch.ts";

/**
 * A piece is sent this long after its first byte came, ms, even when it is not full. Below 1 Mb/s a piece of 64 KiB
 * takes half a second and more to fill, and every viewer would wait that long.
 */
const MAX_PIECE_MS = 500;

/** A piece that is at least this full, and has no random access point yet, ends early where one begins. */
const EARLY_CUT_FILL = 0.25;

/** A piece before it is hashed and signed. */
export interface CutPiece {
  /** Whole transport packets, at least one. */
  readonly data: Uint8Array;
  /** Capture time of its first byte, Unix ms. */
  readonly timestampMs: number;
  /** Sum of `FLAG_…`. */
  readonly flags: number;
}

/**
 * Takes the bytes of a source and returns pieces. Each piece with a random access point holds PAT and PMT before it; if
 * the source has none there, they are inserted.
 */
export class PieceCutter {
  readonly #packetLimit: number;
  readonly #resync = new TsResync();
  readonly #watch = new TsWatch();
  #packets: Uint8Array[] = [];
  #startMs = 0;
  #flags = 0;
  #nextFlags: number;
  /** PIDs of the tables that came since the start of the piece. */
  readonly #tablePids = new Set<number>();
  /** Packets of the source so far. */
  #pushed = 0;

  /** `continues`: false marks the first piece as a discontinuity. */
  constructor(pieceLengthBytes: number, continues: boolean) {
    this.#packetLimit = Math.floor(pieceLengthBytes / PACKET_BYTES);
    this.#nextFlags = continues ? 0 : FLAG_DISCONTINUITY;
  }

  /** Bytes of the source that did not belong to packets. */
  get droppedBytes(): number {
    return this.#resync.droppedBytes;
  }

  /** Takes bytes that arrived at `nowMs` (Unix ms); returns the pieces that they complete. */
  push(chunk: Uint8Array, nowMs: number): CutPiece[] {
    const out: CutPiece[] = [];
    for (const { packets, lost } of this.#resync.push(chunk)) {
      if (lost) this.#interrupt(out);
      for (let at = 0; at < packets.length; at += PACKET_BYTES) this.#packet(packets, at, nowMs, out);
    }
    if (this.#packets.length > 0 && nowMs - this.#startMs >= MAX_PIECE_MS) this.#close(out);
    return out;
  }

  /** The source was lost: what follows is a discontinuity. Returns the piece under way. */
  sourceLost(): CutPiece[] {
    const out: CutPiece[] = [];
    this.#resync.reset();
    this.#interrupt(out);
    return out;
  }

  /** The broadcast is over. Returns the piece under way, marked as the end. */
  end(nowMs: number): CutPiece[] {
    if (this.#packets.length === 0) {
      this.#open(nowMs);
      this.#packets.push(nullPacket());
    }
    this.#flags |= FLAG_END;
    const out: CutPiece[] = [];
    this.#close(out);
    return out;
  }

  #interrupt(out: CutPiece[]): void {
    this.#close(out);
    this.#nextFlags |= FLAG_DISCONTINUITY;
  }

  #packet(bytes: Uint8Array, at: number, nowMs: number, out: CutPiece[]): void {
    const news = this.#watch.push(bytes, at);
    if (this.#packets.length === 0) this.#open(nowMs);
    this.#packets.push(bytes.subarray(at, at + PACKET_BYTES));
    this.#pushed++;
    if (news.tablePid !== null) this.#tablePids.add(news.tablePid);
    if (news.accessPoint !== null && (this.#flags & FLAG_RANDOM_ACCESS) === 0) {
      // The point may have begun some packets ago, with its parameter sets; one in an earlier piece is left unmarked.
      const index = this.#packets.length - (this.#pushed - news.accessPoint);
      if (index >= 0) this.#accessAt(index, nowMs, out);
    }
    if (this.#packets.length >= this.#packetLimit) this.#close(out);
  }

  #accessAt(index: number, nowMs: number, out: CutPiece[]): void {
    const known = this.#watch.tablePackets();
    const whole = this.#tablePids.size >= this.#watch.tableCount;
    const overflows = this.#packets.length + known.length > this.#packetLimit;
    if (index > 0 && !whole && ((this.#watch.hasVideo && index >= this.#packetLimit * EARLY_CUT_FILL) || overflows)) {
      const moved = this.#packets.splice(index);
      this.#close(out);
      this.#open(nowMs);
      this.#packets = [...known, ...moved];
    } else if (!whole && !overflows) this.#packets.splice(index, 0, ...known);
    else if (!whole) return;
    this.#flags |= FLAG_RANDOM_ACCESS;
  }

  #open(nowMs: number): void {
    this.#startMs = nowMs;
    this.#flags = this.#nextFlags;
    this.#nextFlags = 0;
    this.#tablePids.clear();
  }

  #close(out: CutPiece[]): void {
    if (this.#packets.length === 0) return;
    out.push({ data: concatBytes(this.#packets), timestampMs: this.#startMs, flags: this.#flags });
    this.#packets = [];
  }
}

/** A null packet (ISO/IEC 13818-1, 2.4.1), which decoders drop: headers travel with blocks, so no piece may be empty. */
function nullPacket(): Uint8Array {
  const packet = new Uint8Array(PACKET_BYTES).fill(0xff);
  packet.set([SYNC_BYTE, 0x1f, 0xff, 0x10]);
  return packet;
}
