/** Finds whole 188-byte transport packets in a byte stream that may start anywhere and lose bytes. */
import { concatBytes } from "../../bytes/hex.ts";
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";

const SYNC_BYTE = 0x47;
/** Consecutive sync bytes that are believed: a chance match of three is rarer than 1 in 16 million. */
const SYNC_RUN = 3;

/** The packets found. `lost`: bytes were left out before the first of them. */
export interface PacketRun {
  readonly packets: Uint8Array;
  readonly lost: boolean;
}

/** Turns chunks of any size into runs of whole packets. Keeps less than four packets between calls. */
export class TsResync {
  private rest: Uint8Array = new Uint8Array();
  private synced = false;
  private lost = false;
  /** Bytes dropped so far. */
  droppedBytes = 0;

  /** Takes a chunk; returns the packets that it completes, in runs without a loss inside. */
  push(chunk: Uint8Array): PacketRun[] {
    const bytes = this.rest.length === 0 ? chunk : concatBytes([this.rest, chunk]);
    const runs: PacketRun[] = [];
    let at = 0;
    let start = 0;
    const close = () => {
      if (at > start) {
        runs.push({ packets: bytes.slice(start, at), lost: this.lost });
        this.lost = false;
      }
    };
    while (at + PACKET_BYTES <= bytes.length) {
      if (bytes[at] === SYNC_BYTE && (this.synced || isSync(bytes, at))) {
        if (!this.synced && at + (SYNC_RUN - 1) * PACKET_BYTES >= bytes.length) break;
        this.synced = true;
        at += PACKET_BYTES;
        continue;
      }
      close();
      this.lost = this.synced || this.lost;
      this.synced = false;
      const next = bytes.indexOf(SYNC_BYTE, at + 1);
      const to = next < 0 ? bytes.length : next;
      this.droppedBytes += to - at;
      at = start = to;
    }
    close();
    this.rest = bytes.slice(at);
    return runs;
  }

  /** Drops the partial packet kept: the next bytes come from a new connection. */
  reset(): void {
    this.droppedBytes += this.rest.length;
    this.rest = new Uint8Array();
    this.synced = false;
    this.lost = true;
  }
}

/** Sync bytes at `at` and, as far as `bytes` reaches, at the packets after it. */
function isSync(bytes: Uint8Array, at: number): boolean {
  for (let i = 1; i < SYNC_RUN; i++) {
    const next = bytes[at + i * PACKET_BYTES];
    if (next !== undefined && next !== SYNC_BYTE) return false;
  }
  return true;
}
