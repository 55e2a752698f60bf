/**
 * The lineup as programs on the frequencies of a channel map: programs that scan try all of these, and ask at each what
 * is there. The map is that of American aerials, the shortest that libhdhomerun knows.
 */
import type { LineupEntry } from "../../../playlist/channel.ts";

/** Its name. */
export const CHANNEL_MAP = "us-bcast";
/** First and last channel, and the frequency of the first, MHz; each has 6 MHz. */
const RANGES = [[14, 36, 473], [38, 51, 617], [7, 13, 177], [5, 6, 79], [2, 4, 57]] as const;
const CHANNEL_HZ = 6_000_000;
/** A frequency names the channel whose own is no farther away, Hz. */
const NEAR_HZ = 500_000;

/** Programs of one frequency, as many as libhdhomerun takes of it. */
const MAX_PROGRAMS = 64;
/** Text about one frequency, bytes: it must fit into a packet. */
const MAX_INFO_BYTES = 1300;
/** Longest name of a program, characters: libhdhomerun keeps 64 bytes of its line. */
const MAX_NAME_CHARS = 24;

/** One frequency, and the channels of the lineup that are there. */
export interface Multiplex {
  /** In the map. */
  readonly channel: number;
  readonly frequencyHz: number;
  /** Program 1 is the first. */
  readonly entries: readonly LineupEntry[];
  /** Its programs line by line, and its number: what `streaminfo` is. */
  readonly info: string;
}

/**
 * The frequencies with something on them. A lineup of more channels than fit, some 2000, has its last ones on none of
 * them; they still play by their numbers.
 */
export function multiplexesOf(lineup: readonly LineupEntry[]): readonly Multiplex[] {
  const found: Multiplex[] = [];
  let at = 0;
  for (const [first, last, mhz] of RANGES) {
    for (let channel = first; channel <= last && at < lineup.length; channel++) {
      const end = `tsid=0x${channel.toString(16).padStart(4, "0").toUpperCase()}\n`;
      const entries: LineupEntry[] = [];
      let info = "";
      let bytes = end.length;
      while (at < lineup.length && entries.length < MAX_PROGRAMS) {
        const line = `${entries.length + 1}: ${lineup[at]!.number} ${nameOf(lineup[at]!.title)}\n`;
        bytes += new TextEncoder().encode(line).length;
        if (bytes > MAX_INFO_BYTES) break;
        info += line;
        entries.push(lineup[at++]!);
      }
      const frequencyHz = mhz * 1_000_000 + (channel - first) * CHANNEL_HZ;
      found.push({ channel, frequencyHz, entries, info: info + end });
    }
  }
  return found;
}

/**
 * The one that a channel's name means, such as `us-bcast:14`, `auto:473000000` or `8vsb:14`; null where nothing is, and
 * undefined for anything but a name of a channel.
 */
export function tunedTo(name: string, multiplexes: readonly Multiplex[]): Multiplex | null | undefined {
  const number = /^[a-z0-9-]{1,20}:(\d{1,10})$/i.exec(name)?.[1];
  if (number === undefined) return undefined;
  const value = Number(number);
  return multiplexes.find(({ channel, frequencyHz }) =>
    channel === value || Math.abs(frequencyHz - value) <= NEAR_HZ
  ) ?? null;
}

/** Without what ends a line, and what ends a name in it. */
function nameOf(title: string): string {
  // deno-lint-ignore no-control-regex -- control characters are what is left out
  const plain = title.replace(/[\0-\x1f\x7f]+/g, " ").replaceAll("(", "[").replaceAll(")", "]").trim();
  return [...plain].slice(0, MAX_NAME_CHARS).join("") || "?";
}
