/** Reads and writes the times of XMLTV: `20261127010000 +0200`, and the many other ways in which guides write them. */

/** Longest text of a time, characters. */
const MAX_CHARS = 64;
/** Date and time with or without separators, from the month on any part may be missing; then the zone. */
const TIME = /^(\d{4})-?(\d\d)(?:-?(\d\d)(?:[T ]?(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,]\d{1,9})?)?)?)?)?(?![\d:])(.*)$/;
/** An offset, after a name that changes nothing or before one: `+0200`, `-05:30`, `UTC+1`, `+0100 CET`. */
const OFFSET = /^(?:UTC|GMT|Z)?([+-])(\d\d?)(?::?(\d\d))?(?: \(?[A-Z]{1,5}\)?)?$/;

/** Hours from UTC. Names that stand for several zones are those of the guides that write them: IST is left out. */
const ZONES: Readonly<Record<string, number>> = {
  "": 0,
  UT: 0,
  UTC: 0,
  GMT: 0,
  Z: 0,
  WET: 0,
  WEST: 1,
  BST: 1,
  CET: 1,
  MET: 1,
  CEST: 2,
  MEST: 2,
  EET: 2,
  SAST: 2,
  EEST: 3,
  MSK: 3,
  JST: 9,
  KST: 9,
  AWST: 8,
  ACST: 9.5,
  ACDT: 10.5,
  AEST: 10,
  AEDT: 11,
  NZST: 12,
  NZDT: 13,
  NST: -3.5,
  NDT: -2.5,
  ADT: -3,
  AST: -4,
  EDT: -4,
  EST: -5,
  CDT: -5,
  CST: -6,
  MDT: -6,
  MST: -7,
  PDT: -7,
  PST: -8,
  AKDT: -8,
  AKST: -9,
  HST: -10,
};
/** Farthest zone from UTC, hours: +14, as on Kiritimati. */
const MAX_OFFSET_HOURS = 14;
/** Years of programmes. */
const FIRST_YEAR = 1970;
const LAST_YEAR = 2199;

/**
 * Unix seconds; null for anything but a time, for an unknown zone, or a year outside 1970 to 2199. A part that is missing is the
 * first (January, midnight), a zone that is missing is UTC, as the format says.
 */
export function readXmltvTime(text: string): number | null {
  const match = text.length > MAX_CHARS ? null : TIME.exec(text.trim());
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part, at) =>
    part === undefined ? Number(at < 3) : Number(part)
  ) as [number, number, number, number, number, number];
  const offsetS = zoneOffset(match[7]!.trim().toUpperCase());
  if (offsetS === null || year < FIRST_YEAR || year > LAST_YEAR) return null;
  // 24:00 ends a day, and a leap second a minute.
  const isTime = minute < 60 && second <= 60 && (hour < 24 || hour === 24 && minute === 0 && second === 0);
  const date = new Date(Date.UTC(year, month - 1, day));
  if (!isTime || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offsetS;
  return seconds < 0 ? null : seconds;
}

/** Seconds from UTC; null when unknown. */
function zoneOffset(zone: string): number | null {
  const [, sign, hours, minutes = "0"] = OFFSET.exec(zone) ?? [];
  if (sign === undefined) return Object.hasOwn(ZONES, zone) ? ZONES[zone]! * 3600 : null;
  if (Number(hours) > MAX_OFFSET_HOURS || Number(minutes) > 59) return null;
  return (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
}

/** `20261127010000 +0000`: the only form that all readers understand. */
export function writeXmltvTime(unixS: number): string {
  return `${new Date(unixS * 1000).toISOString().slice(0, 19).replace(/[-:T]/g, "")} +0000`;
}
