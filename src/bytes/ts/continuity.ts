/** Packets that are missing in a transport stream, by its continuity counters (ISO/IEC 13818-1, 2.4.3.3). */
import { FIELD_DISCONTINUITY, fieldBytes, hasPayload, NULL_PID, PACKET_BYTES, pidOf } from "./packet.ts";

/** Number of PIDs: they have 13 bits. */
const PIDS = 8192;

/** Follows the counters of all PIDs. */
export class ContinuityWatch {
  /** Last counter of each PID; -1 before the first packet. */
  readonly #last = new Int8Array(PIDS).fill(-1);

  /** Returns how many packets are missing, at least, before and among `packets`: counters repeat after 16. */
  missing(packets: Uint8Array): number {
    let missing = 0;
    for (let at = 0; at < packets.length; at += PACKET_BYTES) {
      const pid = pidOf(packets, at);
      // Only packets with a payload count.
      if (pid === NULL_PID || !hasPayload(packets, at)) continue;
      const counter = packets[at + 3]! & 15;
      const last = this.#last[pid]!;
      this.#last[pid] = counter;
      const isRestart = fieldBytes(packets, at) > 1 && (packets[at + 5]! & FIELD_DISCONTINUITY) !== 0;
      // A packet may be sent twice.
      if (last < 0 || isRestart || counter === last) continue;
      missing += (counter - last - 1) & 15;
    }
    return missing;
  }
}
