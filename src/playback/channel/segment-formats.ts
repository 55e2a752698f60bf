/** Makes transport packets of HLS segments in other formats: fragmented MP4, and sound alone. */
import { wrap33 } from "../../bytes/ts/stamps.ts";
import { id3TagBytes } from "../../bytes/audio-frames.ts";
import type { SegmentConverter } from "../../inputs/hls-segments.ts";
import { FragmentMuxer } from "./fragment-muxer.ts";
import { RadioMuxer, radioSyntax } from "./radio.ts";

/** Boxes with which a segment of fragmented MP4 may begin. */
const FIRST_BOXES: ReadonlySet<string> = new Set(["styp", "ftyp", "moof", "moov", "sidx", "emsg", "prft", "free"]);
/** The owner of the frame that holds the time of a segment (RFC 8216, 3.4); eight bytes follow. */
const TIME_OWNER = "com.apple.streaming.transportStreamTimestamp\0";

/** The formats of one playlist. */
export class SegmentFormats implements SegmentConverter {
  readonly #keepsTimes: boolean;
  #fragments: FragmentMuxer | null = null;
  #sound: RadioMuxer | null = null;
  #isSound = false;

  /** `keepsTimes`: times are those of the segments, for a playlist that is joined with one of MPEG TS. */
  constructor(keepsTimes: boolean) {
    this.#keepsTimes = keepsTimes;
  }

  begin(head: Uint8Array, map: Uint8Array | null): boolean {
    if (map !== null || isFragment(head)) {
      this.#isSound = false;
      this.#fragments ??= new FragmentMuxer({ keepsTimes: this.#keepsTimes });
      this.#fragments.begin(map);
      return true;
    }
    const syntax = radioSyntax(head);
    if (syntax === null) return false;
    this.#isSound = true;
    this.#sound ??= new RadioMuxer(syntax);
    const time90k = this.#keepsTimes ? segmentTime(head) : null;
    if (time90k !== null) this.#sound.continueAt(time90k);
    return true;
  }

  push(bytes: Uint8Array): Uint8Array {
    return this.#isSound ? this.#sound!.push(bytes) : this.#fragments!.push(bytes);
  }

  end(): Uint8Array {
    return this.#isSound ? new Uint8Array() : this.#fragments!.end();
  }

  close(): void {
    this.#fragments?.close();
  }
}

function isFragment(head: Uint8Array): boolean {
  return FIRST_BOXES.has(new TextDecoder("windows-1252").decode(head.subarray(4, 8)));
}

/** The time in the ID3 tag before the sound, 90 kHz; null: it has none. */
function segmentTime(head: Uint8Array): number | null {
  const tag = new TextDecoder("windows-1252").decode(head.subarray(0, Math.min(head.length, id3TagBytes(head, 0))));
  const owner = tag.indexOf(TIME_OWNER);
  const at = owner + TIME_OWNER.length;
  if (owner < 0 || at + 8 > tag.length) return null;
  const view = new DataView(head.buffer, head.byteOffset + at, 8);
  return wrap33((view.getUint32(0) & 1) * 0x100000000 + view.getUint32(4));
}
