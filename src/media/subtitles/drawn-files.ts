/** Drawn subtitles of a segment as the files that programs know: PGS as `.sup`, scripts as lines of an `.ass`. */
import { concatBytes } from "../../bytes/hex.ts";
import type { DrawnUnit } from "../model/types.ts";

/** A segment of PGS in a file: "PG", and its presentation and decoding times. Then its type, and a length of 16 bits. */
const SUP_HEAD_BYTES = 10;
const SEGMENT_HEAD_BYTES = 3;
/** A text of which the file does not say how long it is shown, 90 kHz. */
const UNKNOWN_SHOWN_90K = 3 * 90_000;
/** Largest head of a script that is sent, bytes: styles of long series have some tens of KiB. */
const MAX_SCRIPT_BYTES = 512 * 1024;

/** `units` of PGS as a `.sup` file, with times from `zero90k` on. A unit that is damaged is left out. */
export function supOf(units: readonly DrawnUnit[], zero90k: number): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  for (const { at90k, data } of units) {
    const own: Uint8Array[] = [];
    let at = 0;
    while (at + SEGMENT_HEAD_BYTES <= data.length) {
      const end = at + SEGMENT_HEAD_BYTES + (data[at + 1]! << 8 | data[at + 2]!);
      if (end > data.length) break;
      const head = new Uint8Array(SUP_HEAD_BYTES);
      head.set([0x50, 0x47]);
      new DataView(head.buffer).setUint32(2, Math.max(0, Math.round(at90k - zero90k)) >>> 0);
      own.push(head, data.subarray(at, end));
      at = end;
    }
    if (at === data.length) parts.push(...own);
  }
  return concatBytes(parts);
}

/** The head of a script, from a track's codec data: its facts and styles, up to where its events begin. */
export function scriptHead(codecPrivate: Uint8Array | null): string {
  const text = new TextDecoder().decode((codecPrivate ?? new Uint8Array()).subarray(0, MAX_SCRIPT_BYTES));
  const clean = text.replaceAll("\0", "").replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const events = clean.indexOf("\n[Events]");
  return `${(events < 0 ? clean : clean.slice(0, events)).trimEnd()}\n\n[Events]\n${EVENT_FIELDS}\n`;
}

const EVENT_FIELDS = "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text";

/** `units` of a script as lines of its events, in the order of the script, with times from `zero90k` on. */
export function scriptLines(units: readonly DrawnUnit[], zero90k: number): string {
  const decoder = new TextDecoder();
  const lines: { readonly order: number; readonly line: string }[] = [];
  for (const { at90k, shown90k, data } of units) {
    const raw = decoder.decode(data).replace(/[\0\r\n]+/g, " ");
    // ReadOrder and Layer come first; the times stand beside the block.
    const [whole, order, layer] = /^(\d{1,9}),(-?\d{0,9}),/.exec(raw) ?? [];
    if (whole === undefined) continue;
    const from90k = Math.max(0, at90k - zero90k);
    const times = [from90k, from90k + (shown90k ?? UNKNOWN_SHOWN_90K)].map(timeText);
    lines.push({
      order: Number(order),
      line: `Dialogue: ${layer || 0},${times.join(",")},${raw.slice(whole.length)}\n`,
    });
  }
  return lines.sort((a, b) => a.order - b.order).map(({ line }) => line).join("");
}

/** `h:mm:ss.cc`. */
function timeText(time90k: number): string {
  const hundredths = Math.round(time90k / 900);
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  return `${Math.floor(hundredths / 360_000)}:${two(hundredths / 6000 % 60)}:${two(hundredths / 100 % 60)}.${
    two(hundredths % 100)
  }`;
}
