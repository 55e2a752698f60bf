/** Finds where a file of packets lost bytes or has others between them, as it is read. */
import { SYNC_BYTE } from "./packet.ts";
import { SYNC_RUN, syncsAt } from "./sync.ts";

/** Examines the bytes of one reading, in order. */
export class GapFinder {
  readonly #strideBytes: number;
  readonly #found: (at: number) => void;
  /** Where the file's next packet begins if nothing is lost; null: not known. */
  #next: number | null = null;
  #end = -1;
  #isLost = false;

  /** `found` is called with the place in the file of each packet that does not follow the one before it. */
  constructor(strideBytes: number, found: (at: number) => void) {
    this.#strideBytes = strideBytes;
    this.#found = found;
  }

  /** Takes the bytes of the file from `offset` on. */
  push(bytes: Uint8Array, offset: number): void {
    if (offset !== this.#end) {
      this.#next = null;
      this.#isLost = false;
    }
    this.#end = offset + bytes.length;
    let at = (this.#next ?? offset) - offset;
    while (at < bytes.length) {
      if (this.#next === null) {
        at = rowFrom(bytes, at, this.#strideBytes);
        if (at < 0) return;
        if (this.#isLost) this.#found(offset + at);
        this.#isLost = false;
      }
      while (at < bytes.length && bytes[at] === SYNC_BYTE) at += this.#strideBytes;
      this.#isLost = at < bytes.length;
      this.#next = this.#isLost ? null : offset + at;
    }
  }
}

/** Where the first row of packets in `bytes` begins at or after `from`; −1 if there is none. */
function rowFrom(bytes: Uint8Array, from: number, strideBytes: number): number {
  let at = bytes.indexOf(SYNC_BYTE, from);
  while (at >= 0 && syncsAt(bytes, at, strideBytes) < SYNC_RUN) at = bytes.indexOf(SYNC_BYTE, at + 1);
  return at;
}
