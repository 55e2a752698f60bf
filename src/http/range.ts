/** Byte ranges: RFC 9110 section 14. One range is served; a request for several gets the whole. */

/** A range of a body, end exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Longest header with one range in it, characters; runtimes pass on hundreds of thousands. */
const MAX_RANGE_CHARS = 128;

/**
 * The requested range. null: the whole (no header, another unit, malformed or several ranges). `"unsatisfiable"`: 416.
 * `sizeBytes` is the whole size.
 */
export function parseRange(header: string | null, sizeBytes: number): ByteRange | null | "unsatisfiable" {
  if (header === null || header.length > MAX_RANGE_CHARS) return null;
  const match = /^bytes\s*=\s*(\d+\s*)?-\s*(\d*)$/i.exec(header.trim());
  if (match === null) return null;
  const [first = "", last = ""] = [match[1], match[2]];
  if (first === "") {
    if (last === "") return null;
    const suffix = Number(last);
    return suffix === 0 || sizeBytes === 0
      ? "unsatisfiable"
      : { start: Math.max(0, sizeBytes - suffix), end: sizeBytes };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return null;
  if (start >= sizeBytes) return "unsatisfiable";
  return { start, end: last === "" ? sizeBytes : Math.min(sizeBytes, Number(last) + 1) };
}
