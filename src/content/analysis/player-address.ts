/** Addresses as lists for players have them: `http://host/stream|User-Agent=Player%2F1&Referer=http://host/`. */
import { percentDecoded } from "../../bytes/percent.ts";

/** Fields that such an address may set: who asks, and from where. */
const FIELDS: ReadonlySet<string> = new Set(["user-agent", "referer", "origin", "cookie", "accept", "accept-language"]);
/** Longest value, characters. */
const MAX_VALUE_CHARS = 2048;

/** An address, and the fields to send with it. */
export interface PlayerAddress {
  readonly url: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Splits `address` at its `|`; fields that are not for players to set are left out. */
export function readPlayerAddress(address: string): PlayerAddress {
  const bar = address.indexOf("|");
  if (bar < 0) return { url: address, headers: {} };
  const headers: Record<string, string> = {};
  for (const part of address.slice(bar + 1).split("&")) {
    const equals = part.indexOf("=");
    const name = part.slice(0, Math.max(0, equals)).trim().toLowerCase();
    const value = percentDecoded(part.slice(equals + 1)).trim();
    // A value that no header can hold would have the whole request refused.
    if (FIELDS.has(name) && value.length <= MAX_VALUE_CHARS && /^[\x20-\x7e\xa0-\xff]+$/.test(value)) {
      headers[name] = value;
    }
  }
  return { url: address.slice(0, bar).trim(), headers };
}

/**
 * The part of `headers` that may go to `url` when they were given for `origin`: to other origins only the name of the
 * player.
 */
export function headersFor({ url: origin, headers }: PlayerAddress, url: string): Readonly<Record<string, string>> {
  if (new URL(url).origin === new URL(origin).origin) return headers;
  const agent = headers["user-agent"];
  return agent === undefined ? {} : { "user-agent": agent };
}
