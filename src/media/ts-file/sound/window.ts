/** The packets of one audio PID in a stretch of a transport stream: AAC is made from them and takes their place. */
import { hasPayload, PACKET_BYTES, payloadOf, readPesHeader, startsUnit } from "../../../bytes/ts/packet.ts";
import { wrap33 } from "../../../bytes/ts/stamps.ts";

/** A packet of the PID with payload. */
export interface AudioPacket {
  /** Number of the packet in the file. */
  readonly number: number;
  /** Its 188 bytes. */
  readonly bytes: Uint8Array;
}

/** A PES packet with a timestamp; it reaches up to the next such PES. */
export interface AudioUnit {
  /** Index of its first packet in the stretch's packets. */
  readonly packet: number;
  /** Ticks of 90 kHz from the file's origin, 0 … 2^33. */
  readonly time90k: number;
}

/** The packets and PES of one stretch. */
export interface AudioStretch {
  readonly packets: readonly AudioPacket[];
  readonly units: readonly AudioUnit[];
}

/** Collects the packets of one PID in order. */
export class StretchCollector {
  readonly #origin90k: number;
  readonly #packets: AudioPacket[] = [];
  readonly #units: AudioUnit[] = [];
  #counter = -1;

  /** Times are counted from `origin90k`, 33 bits. */
  constructor(origin90k: number) {
    this.#origin90k = origin90k;
  }

  /** Adds packet `number` at `bytes[at]`, which must be usable. */
  push(bytes: Uint8Array, at: number, number: number): void {
    if (!hasPayload(bytes, at)) return;
    const counter = bytes[at + 3]! & 15;
    const starts = startsUnit(bytes, at);
    // A repeated packet (ISO/IEC 13818-1, 2.4.3.3) has no new data and does not advance the counter.
    if (counter === this.#counter && !starts) return;
    this.#counter = counter;
    const packet = bytes.slice(at, at + PACKET_BYTES);
    if (starts) {
      const pts90k = readPesHeader(payloadOf(packet, 0))?.pts90k ?? null;
      if (pts90k !== null) {
        this.#units.push({ packet: this.#packets.length, time90k: wrap33(pts90k - this.#origin90k) });
      }
    }
    this.#packets.push({ number, bytes: packet });
  }

  /** Returns what was collected. */
  finish(): AudioStretch {
    return { packets: this.#packets, units: this.#units };
  }
}

/** A larger step of time between two PES ends a span, 90 kHz: either there is no sound in between, or the clock jumped. */
const MAX_STEP_90K = 90_000;

/** Units `[from, to)` whose times are continuous. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Splits the units where their times are not continuous. */
export function spansOf(units: readonly AudioUnit[]): Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (let i = 1; i <= units.length; i++) {
    const step = i === units.length ? -1 : units[i]!.time90k - units[i - 1]!.time90k;
    if (step >= 0 && step <= MAX_STEP_90K) continue;
    spans.push({ from, to: i });
    from = i;
  }
  return spans;
}
