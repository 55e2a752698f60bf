/** Magnet links (BEP 9, BEP 53) and infohashes as people write them. */
import { fromHex, toHex } from "../bytes/hex.ts";
import { percentDecoded } from "../bytes/percent.ts";
import { MillraceError } from "../errors.ts";
import { MAX_COMPONENT_BYTES, MAX_MAGNET_LENGTH, MAX_URLS } from "./limits.ts";
import { isTracker, isWebSeed } from "./transport-file.ts";
import type { Magnet } from "./types.ts";

/** Most files that `so` may select. Repeats count too, or overlapping ranges would take long to expand. */
const MAX_SELECTED = 10_000;

/** Most transport files asked for: each costs a connection before anything plays. */
const MAX_SOURCES = 8;

/** Most unread fields named, and the length of each, characters: enough to see what is wrong with a link. */
const MAX_UNREAD = 20;
const MAX_UNREAD_CHARS = 200;

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BTIH = /^urn:btih:/i;
/** A multihash (BEP 52): SHA-256, 32 bytes. */
const BTMH = /^urn:btmh:1220([0-9a-f]{64})$/i;

/** The 20 bytes of 40 hexadecimal or 32 base32 characters (RFC 4648), in either case. Throws `invalid_argument`. */
export function parseInfohash(text: string): Uint8Array {
  const trimmed = text.trim();
  if (/^[0-9a-fA-F]{40}$/.test(trimmed)) return fromHex(trimmed);
  if (/^[A-Za-z2-7]{32}$/.test(trimmed)) return fromBase32(trimmed.toUpperCase());
  throw new MillraceError("invalid_argument", "invalid infohash: 40 hexadecimal or 32 base32 characters are expected");
}

function fromBase32(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length * 5 / 8);
  let bits = 0;
  let bitCount = 0;
  let at = 0;
  for (const character of text) {
    bits = (bits << 5 | BASE32.indexOf(character)) & 0xfff;
    bitCount += 5;
    if (bitCount >= 8) {
      bitCount -= 8;
      bytes[at++] = bits >> bitCount;
    }
  }
  return bytes;
}

/**
 * Reads a magnet link: `xt` (btih, hexadecimal or base32; btmh), `dn`, `tr`, `ws`, `x.pe`, `so`, `xs`, `as`; `tr.1` counts as
 * `tr`. Links are read as they were copied: `&amp;` from a feed's source, percent-encoded twice, several addresses in
 * one field. Addresses that cannot be used are named in `unread`. Throws `invalid_argument`.
 */
export function parseMagnet(uri: string): Magnet {
  const invalid = (reason: string) => new MillraceError("invalid_argument", `invalid magnet link: ${reason}`);
  if (uri.length > MAX_MAGNET_LENGTH) throw invalid(`longer than ${MAX_MAGNET_LENGTH} characters`);
  const text = uri.trim();
  const query = /^magnet:\/{0,2}\?/i.test(text) ? text : /^magnet:%3f/i.test(text) ? percentDecoded(text) : null;
  if (query === null) throw invalid("it does not begin with magnet:?");
  const fields = new Fields(query.slice(query.indexOf("?") + 1).replaceAll(/&amp;/gi, "&"));

  const topics = fields.all("xt").map((topic) => topic.replaceAll(/\s/g, ""));
  const topic = topics.find((xt) => BTIH.test(xt));
  const topicV2 = topics.find((xt) => BTMH.test(xt));
  if (topic === undefined && topicV2 === undefined) {
    const isOther = topics.some((xt) => /^urn:btmh:/i.test(xt));
    throw invalid(
      isOther ? "its xt=urn:btmh:… is not a SHA-256 of version 2" : "it has no xt=urn:btih:… or xt=urn:btmh:…",
    );
  }
  const infohashV2 = topicV2 === undefined ? null : fromHex(topicV2.replace(BTMH, "$1"));
  const infohash = topic === undefined ? infohashV2!.slice(0, 20) : parseInfohash(topic.replace(BTIH, ""));
  const name = fields.all("dn").find((dn) => dn !== "") ?? null;
  return {
    infohash,
    infohashHex: toHex(infohash),
    ...(infohashV2 === null ? {} : { infohashV2 }),
    name: name === null ? null : name.slice(0, MAX_COMPONENT_BYTES),
    trackers: fields.addresses("tr", (url) => isTracker(url) ? url : null),
    peers: fields.addresses("x.pe", normalisePeer),
    webSeeds: fields.addresses("ws", (url) => isWebSeed(url) ? url : null),
    sources: [...fields.addresses("xs", readSource), ...fields.addresses("as", readSource)].slice(0, MAX_SOURCES),
    selectOnly: readSelection(fields.all("so")),
    unread: fields.unread,
  };
}

/** The fields of a link, and which of their addresses could not be read. */
class Fields {
  /** `key=value` of addresses that cannot be used. */
  readonly unread: string[] = [];
  readonly #values = new Map<string, string[]>();

  constructor(query: string) {
    for (const [key, value] of new URLSearchParams(query)) {
      const name = key.toLowerCase().replace(/\.\d+$/, "");
      const known = this.#values.get(name);
      if (known === undefined) this.#values.set(name, [value.trim()]);
      else known.push(value.trim());
    }
  }

  all(key: string): readonly string[] {
    return this.#values.get(key) ?? [];
  }

  /** The usable addresses of a field, each once, at most 100. `read` returns null for what it can't use. */
  addresses(key: string, read: (text: string) => string | null): string[] {
    const found = new Set<string>();
    for (const value of this.all(key)) {
      if (value === "") continue;
      for (const text of oneByOne(value)) {
        const address = read(text) ?? read(percentDecoded(text));
        if (address !== null) found.add(address);
        else if (this.unread.length < MAX_UNREAD) this.unread.push(`${key}=${text}`.slice(0, MAX_UNREAD_CHARS));
      }
    }
    return [...found].slice(0, MAX_URLS);
  }
}

/** The addresses in one field: some pages put several there, separated by commas or blanks, or by nothing. */
function oneByOne(value: string): string[] {
  const text = /^[a-z]+%3a/i.test(value) ? percentDecoded(value) : value;
  return text.split(/[\s,;|]{1,4}(?=[a-z][a-z0-9+]{1,5}:\/\/)|(?<=\/announce)(?=[a-z]{3,5}:\/\/)/i);
}

/** The address of the torrent's transport file; other exact sources (`urn:btpk:`, `dchub:`) name other networks. */
function readSource(text: string): string | null {
  return isWebSeed(text) ? text : null;
}

/** `host:port` with IPv6 in brackets; null when it cannot be repaired to that form. */
function normalisePeer(text: string): string | null {
  const match = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([0-9A-Za-z._-]{1,253})|([0-9a-fA-F:.]{2,45})):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const port = Number(match[4]);
  if (port < 1 || port > 65535) return null;
  const v6 = match[1] ?? match[3];
  if (v6 === undefined) return `${match[2]}:${port}`;
  return URL.canParse(`http://[${v6}]/`) ? `[${v6.toLowerCase()}]:${port}` : null;
}

/** `0,2,4-6` as indexes, ascending; null when there is no usable selection. */
function readSelection(values: readonly string[]): number[] | null {
  const selected = new Set<number>();
  let left = MAX_SELECTED;
  for (const part of values.join(",").split(",")) {
    const match = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(part.trim());
    if (match === null) continue;
    const last = Number(match[2] ?? match[1]);
    for (let index = Number(match[1]); index <= last && left > 0; index++, left--) selected.add(index);
  }
  return selected.size > 0 ? [...selected].sort((a, b) => a - b) : null;
}
