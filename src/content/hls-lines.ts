/** The lines of HLS playlists that matter here, within bounds, and in parts that are parsed one after the other. */

/**
 * Most lines that are read, each a few microseconds of parsing, in which the engine does nothing else: a day of two-second
 * segments has 86,400, one of six-second segments that have a range, a key and a discontinuity each has 72,000.
 */
export const MAX_PLAYLIST_LINES = 90_000;
/** Segments that are parsed in one go, a few milliseconds. */
const PART_SEGMENTS = 250;
/** Newest segments that are read of a playlist that still grows: a reader is three behind its end, or catches up. */
const MAX_LIVE_SEGMENTS = 1000;
/** Most lines of the beginning: a start page of variants, or the first segments. */
const HEAD_LINES = 4096;
/** Lines that are looked at in one go, a millisecond. */
const STEP_LINES = 1000;
/** Most variants and renditions together: each variant is compared with all renditions. Large playlists have 200. */
export const MAX_CHOICES = 512;
/** The tags of choices. */
const CHOICES: ReadonlySet<string> = new Set(["EXT-X-STREAM-INF", "EXT-X-I-FRAME-STREAM-INF", "EXT-X-MEDIA"]);
/** Tags with attributes that are read, and longest such line: signed addresses have 2 KiB. */
const LISTS: ReadonlySet<string> = new Set([...CHOICES, "EXT-X-KEY", "EXT-X-MAP"]);
const MAX_LIST_CHARS = 8192;
/** An attribute; commas in quotes do not end it. */
const ATTRIBUTE = /(?:[^,"]|"[^"]*"?)+/g;
/**
 * Attributes that are read. For others the parser reports what is wrong with them, which costs more than all the rest.
 */
const ATTRIBUTES: ReadonlySet<string> = new Set(
  [
    ...["METHOD", "KEYFORMAT", "IV", "BANDWIDTH", "AUDIO", "TYPE", "GROUP-ID", "NAME", "URI", "BYTERANGE"],
    ...["DEFAULT", "AUTOSELECT"],
  ],
);
/** Tags that matter here. The parser compares some of the others with all of their kind: seconds for a few thousand. */
const TAGS: ReadonlySet<string> = new Set([
  ...LISTS,
  "EXTM3U",
  "EXTINF",
  "EXT-X-BYTERANGE",
  "EXT-X-DISCONTINUITY",
  "EXT-X-ENDLIST",
  "EXT-X-GAP",
  "EXT-X-MEDIA-SEQUENCE",
  "EXT-X-TARGETDURATION",
]);
/** Tags about the segment that follows. */
const SEGMENT_TAGS = /^#(?:EXTINF|EXT-X-BYTERANGE|EXT-X-DISCONTINUITY|EXT-X-GAP|EXT-X-KEY|EXT-X-MAP)(?::|$)/;
/**
 * `text` without the unused lines, in steps; of a head at most its first lines and its end. Throws when the rest is too much
 * to parse.
 */
export function* linesThatMatter(text: string, isHead: boolean): Generator<void, readonly string[]> {
  // A list without end is left at once: each segment has two lines.
  if (!isHead && holdsMore(text, "\n#EXTINF", MAX_PLAYLIST_LINES / 2)) throw tooManyLines();
  const lines: string[] = [];
  const ranges = new RangeOffsets();
  let choices = 0;
  let seen = 0;
  for (let line of linesOf(text)) {
    if (++seen % STEP_LINES === 0) yield;
    if (line === "") continue;
    if (isHead && (lines.length >= HEAD_LINES || choices >= MAX_CHOICES) && line !== "#EXT-X-ENDLIST") continue;
    if (line.startsWith("#EXTINF:")) {
      // Most lines are these and addresses. The parser fails on titles beyond ASCII, which nobody reads here.
      const title = line.indexOf(",");
      line = title < 0 ? line : line.slice(0, title + 1);
    } else if (line.startsWith("#")) {
      const tag = line.slice(1).split(":", 1)[0]!.trim();
      if (!TAGS.has(tag) || (tag === "EXT-X-MEDIA" && !line.includes("TYPE=AUDIO"))) continue;
      if (CHOICES.has(tag) && ++choices > MAX_CHOICES) throw new Error(`it has more than ${MAX_CHOICES} choices`);
      if (LISTS.has(tag)) line = `#${tag}:${attributesThatMatter(line.slice(line.indexOf(":") + 1))}`;
    }
    if (line.startsWith("#EXT-X-BYTERANGE:")) ranges.range(line, lines.length);
    else if (!line.startsWith("#")) ranges.address(line, lines);
    if (lines.push(line) > MAX_PLAYLIST_LINES) throw tooManyLines();
  }
  yield;
  const whole = withoutTail(lines);
  yield;
  return isHead ? whole : newestOf(whole);
}

/** Gives ranges that say no offset the one that they have: where the one before ends, of the same resource (4.3.2.2). */
class RangeOffsets {
  /** The range of the next segment, and the number of its line. */
  #open: { readonly bytes: number; readonly offset: number | null; readonly line: number } | null = null;
  #last: { readonly address: string; readonly end: number } | null = null;

  range(line: string, number: number): void {
    const [, bytes = "0", offset] = /:\s*(\d{1,15})(?:@(\d{1,15}))?/.exec(line) ?? [];
    this.#open = { bytes: Number(bytes), offset: offset === undefined ? null : Number(offset), line: number };
  }

  address(address: string, lines: string[]): void {
    const open = this.#open;
    this.#open = null;
    const follows = this.#last?.address === address ? this.#last.end : 0;
    this.#last = open === null ? null : { address, end: (open.offset ?? follows) + open.bytes };
    if (open !== null && open.offset === null) lines[open.line] = `#EXT-X-BYTERANGE:${open.bytes}@${follows}`;
  }
}

function tooManyLines(): Error {
  return new Error(`it has more than ${MAX_PLAYLIST_LINES} lines`);
}

/** Whether `part` stands more than `times` times in `text`. */
function holdsMore(text: string, part: string, times: number): boolean {
  let found = 0;
  for (let at = text.indexOf(part); at >= 0 && found <= times; at = text.indexOf(part, at + part.length)) found++;
  return found > times;
}

/** The lines of `text`, trimmed, one after the other: most of a text that is too long is never looked at. */
function* linesOf(text: string): Generator<string, void> {
  for (let at = 0; at < text.length;) {
    const end = text.indexOf("\n", at);
    yield text.slice(at, end < 0 ? text.length : end).trim();
    at = end < 0 ? text.length : end + 1;
  }
}

/** `lines` without tags about a segment that does not follow: it comes with a later playlist, and its tags then, too. */
function withoutTail(lines: readonly string[]): readonly string[] {
  const end = lines.findLastIndex((line) => !line.startsWith("#")) + 1;
  if (end === lines.length) return lines;
  return [...lines.slice(0, end), ...lines.slice(end).filter((line) => !SEGMENT_TAGS.test(line))];
}

/** The lines about the newest segments, if segments may still be added: parsing a day of them takes 70 MB. */
function newestOf(lines: readonly string[]): readonly string[] {
  if (lines.some((line) => line === "#EXT-X-ENDLIST" || line.startsWith("#EXT-X-STREAM-INF"))) return lines;
  const ends = endsOf(lines);
  const dropped = ends.length - MAX_LIVE_SEGMENTS;
  return dropped <= 0
    ? lines
    : [...new LastTags(lines).headAt(ends[dropped - 1]! + 1, dropped), ...lines.slice(ends[dropped - 1]! + 1)];
}

/** Where segments end: their addresses. */
function endsOf(lines: readonly string[]): number[] {
  const ends: number[] = [];
  for (let i = 0; i < lines.length; i++) if (!lines[i]!.startsWith("#")) ends.push(i);
  return ends;
}

/** Tags that hold for all that follows them. */
const LASTING = ["#EXT-X-TARGETDURATION:", "#EXT-X-MEDIA-SEQUENCE:", "#EXT-X-KEY:", "#EXT-X-MAP:"] as const;

/** The tags that hold at one line after the other. */
class LastTags {
  readonly #lines: readonly string[];
  readonly #last = new Map<string, string>();
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  /** What holds for the lines from `cut` on, before which there are `dropped` segments. `cut` never falls. */
  headAt(cut: number, dropped: number): string[] {
    for (; this.#at < cut; this.#at++) {
      const line = this.#lines[this.#at]!;
      if (!line.startsWith("#EXT-X-")) continue;
      const tag = LASTING.find((one) => line.startsWith(one));
      if (tag !== undefined) this.#last.set(tag, line);
    }
    const [duration, sequence, key, map] = LASTING.map((tag) => this.#last.get(tag) ?? "") as [string, ...string[]];
    const first = Number.parseInt(sequence!.split(":")[1] ?? "", 10) || 0;
    return ["#EXTM3U", duration, `#EXT-X-MEDIA-SEQUENCE:${first + dropped}`, key!, map!];
  }
}

/** The text of a playlist in parts of so many segments, each a playlist of its own; of a master playlist all of it. */
export function* partsOf(lines: readonly string[]): Generator<string, void> {
  const ends = endsOf(lines);
  if (ends.length <= PART_SEGMENTS || lines.some((line) => line.startsWith("#EXT-X-STREAM-INF"))) {
    return yield lines.join("\n");
  }
  const tags = new LastTags(lines);
  for (let first = 0; first < ends.length; first += PART_SEGMENTS) {
    const from = first === 0 ? 0 : ends[first - 1]! + 1;
    const to = first + PART_SEGMENTS >= ends.length ? lines.length : ends[first + PART_SEGMENTS - 1]! + 1;
    yield [...(first === 0 ? [] : tags.headAt(from, first)), ...lines.slice(from, to)].join("\n");
  }
}

function attributesThatMatter(list: string): string {
  if (list.length > MAX_LIST_CHARS) throw new Error(`it has a tag of more than ${MAX_LIST_CHARS} characters`);
  const all = list.match(ATTRIBUTE) ?? [];
  return all.filter((attribute) => ATTRIBUTES.has(attribute.split("=", 1)[0]!.trim())).join(",");
}
