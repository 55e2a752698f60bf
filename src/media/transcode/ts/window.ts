/** The packets of one audio PID in a stretch of a transport stream: where AAC can go, and what it is made from. */
import { hasPayload, PACKET_BYTES, payloadOf, readPesHeader, startsUnit } from "../../../bytes/ts/packet.ts";
import { wrap33 } from "../../../bytes/ts/stamps.ts";

/** A packet of the PID that carries payload. */
export interface AudioPacket {
  /** Its number in the file. */
  readonly number: number;
  /** Its 188 bytes. */
  readonly bytes: Uint8Array;
}

/** A PES packet with a time, with the packets up to the next one. */
export interface AudioUnit {
  /** Index of its first packet in the stretch's packets. */
  readonly packet: number;
  /** Ticks of 90 kHz from the file's origin, 0 … 2^33. */
  readonly time90k: number;
}

/** What was found in one stretch. */
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

  /** `origin90k`: the time, 33 bits, from which times are counted. */
  constructor(origin90k: number) {
    this.#origin90k = origin90k;
  }

  /** Takes packet `number` at `bytes[at]`, which must be usable. */
  push(bytes: Uint8Array, at: number, number: number): void {
    if (!hasPayload(bytes, at)) return;
    const counter = bytes[at + 3]! & 15;
    const starts = startsUnit(bytes, at);
    // A repeated packet (ISO/IEC 13818-1, 2.4.3.3) has nothing new and no place in the counters.
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

  /** What was collected. */
  finish(): AudioStretch {
    return { packets: this.#packets, units: this.#units };
  }
}

/** A step of time between two PES beyond this ends a span, 90 kHz: what lies between is no sound, or the clock has jumped. */
const MAX_STEP_90K = 90_000;

/** Units `[from, to)` whose times follow one another. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The units cut where their times do not follow one another. */
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
