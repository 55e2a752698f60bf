/** Magnet links (BEP 9, BEP 53) and infohashes as people write them. */
import { fromHex, toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { MAX_COMPONENT_BYTES, MAX_MAGNET_LENGTH, MAX_URLS } from "./limits.ts";
import { isTracker, isWebSeed } from "./transport-file.ts";
import type { Magnet } from "./types.ts";

/** Most files that `so` may select. Repeats count too, or overlapping ranges would take long to expand. */
const MAX_SELECTED = 10_000;

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BTIH = /^urn:btih:/i;

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
 * Reads a magnet link: `xt` (btih, hexadecimal or base32), `dn`, `tr`, `ws`, `x.pe`, `so`; `tr.1` counts as `tr`.
 * Unusable addresses are left out. Throws `invalid_argument`.
 */
export function parseMagnet(uri: string): Magnet {
  const invalid = (reason: string) => new MillraceError("invalid_argument", `invalid magnet link: ${reason}`);
  if (uri.length > MAX_MAGNET_LENGTH) throw invalid(`longer than ${MAX_MAGNET_LENGTH} characters`);
  const text = uri.trim();
  if (!/^magnet:\?/i.test(text)) throw invalid("it does not begin with magnet:?");
  const values = new Map<string, string[]>();
  for (const [key, value] of new URLSearchParams(text.slice("magnet:?".length))) {
    const name = key.toLowerCase().replace(/\.\d+$/, "");
    const known = values.get(name);
    if (known === undefined) values.set(name, [value.trim()]);
    else known.push(value.trim());
  }
  const all = (key: string) => values.get(key) ?? [];

  const topic = all("xt").find((xt) => BTIH.test(xt));
  if (topic === undefined) {
    const onlyV2 = all("xt").some((xt) => /^urn:btmh:/i.test(xt));
    throw invalid(onlyV2 ? "torrents of version 2 only are not supported" : "it has no xt=urn:btih:…");
  }
  const infohash = parseInfohash(topic.replace(BTIH, ""));
  const name = all("dn").find((dn) => dn !== "") ?? null;
  return {
    infohash,
    infohashHex: toHex(infohash),
    name: name === null ? null : name.slice(0, MAX_COMPONENT_BYTES),
    trackers: distinct(all("tr").filter(isTracker)),
    peers: distinct(all("x.pe").map(normalisePeer).filter((peer) => peer !== null)),
    webSeeds: distinct(all("ws").filter(isWebSeed)),
    selectOnly: readSelection(all("so")),
  };
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].slice(0, MAX_URLS);
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
