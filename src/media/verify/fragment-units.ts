/** Counts the access units that segments of fragmented MP4 describe, by track. */
import { concatBytes } from "../../bytes/hex.ts";
import { readBoxHeader, viewOf } from "../../bytes/boxes.ts";
import { readFragment } from "../index/mp4/fragment.ts";
import { TimeSpan, type UnitCount } from "./ts-units.ts";

/** Push the bytes of a segment in order, then `finish`. */
export class FragmentUnits {
  readonly #movie: Parameters<typeof readFragment>[2];
  readonly #counts: { units: number; readonly times: TimeSpan }[];
  #waiting: Uint8Array = new Uint8Array(0);
  #skipBytes = 0;

  /** A segment of `tracks` tracks with the ids from 1 on. */
  constructor(tracks: number) {
    const ids = Array.from({ length: tracks }, (_, i) => i + 1);
    this.#movie = { tracks: ids.map((id) => ({ track: { id } })), fragmentDefaults: null };
    this.#counts = ids.map(() => ({ units: 0, times: new TimeSpan() }));
  }

  /** Takes the next bytes. */
  push(bytes: Uint8Array): void {
    const skipped = Math.min(this.#skipBytes, bytes.length);
    this.#skipBytes -= skipped;
    let rest = concatBytes([this.#waiting, bytes.subarray(skipped)]);
    for (;;) {
      const view = viewOf(rest);
      const header = readBoxHeader(view, 0, rest.length);
      if (header === null || header.sizeBytes === null) break;
      const { type, headerBytes, sizeBytes } = header;
      if (type === "moof") {
        if (rest.length < sizeBytes) break;
        const box = { type, view, start: headerBytes, end: sizeBytes };
        for (const { track, dtsUnits, shiftUnits } of readFragment(box, 0, this.#movie, Infinity)) {
          const count = this.#counts[track]!;
          count.units++;
          count.times.add((dtsUnits ?? 0) + shiftUnits);
        }
      }
      this.#skipBytes = Math.max(0, sizeBytes - rest.length);
      rest = rest.subarray(Math.min(sizeBytes, rest.length));
    }
    this.#waiting = rest.slice();
  }

  /** What was counted of each track. */
  finish(): UnitCount[] {
    return this.#counts.map(({ units, times: { first90k, last90k } }, i) => ({ id: i + 1, units, first90k, last90k }));
  }
}
