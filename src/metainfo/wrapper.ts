/**
 * Wrappers: transport files of content that comes by HTTP, so that an HLS stream or a media file has an infohash and a
 * content id too. `info` is `{wrapper: {url, v: 1}}`, so that a URL always has the same infohash; everything else known
 * about it stays outside `info`.
 */
import { decodeBencode, encodeBencode, integerWithin, isDictionary } from "../bytes/bencode.ts";
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { decodeName } from "./file-path.ts";
import { infohashOf } from "./info.ts";
import { encodeOuter, splitTransportFile } from "./transport-file.ts";

/** Longest URL, characters: signed URLs are long. */
const MAX_WRAPPED_URL_CHARS = 8192;
/** Largest wrapper, bytes: the URL, a title and a few fields. */
const MAX_WRAPPER_BYTES = 64 * 1024;
const MAX_NAME_CHARS = 500;
const VERSION = 1;

/** The facts known about a URL when it is wrapped. */
export interface WrappedContent {
  /** http or https, at most 8192 characters. */
  readonly url: string;
  /** Title. */
  readonly name: string;
  /** 0 recorded, 1 live, -1 unknown. */
  readonly isLive: -1 | 0 | 1;
  /** MIME type. */
  readonly mime: string;
  /** 0 when it has no size, or an unknown one. */
  readonly sizeBytes: number;
}

/** A wrapper with its ids. */
export interface Wrapper extends WrappedContent {
  /** SHA-1 of the bencoded `info`, 20 bytes. */
  readonly infohash: Uint8Array;
  readonly infohashHex: string;
  /** Always empty: nobody announces wrappers. The field exists because content ids are computed from it too. */
  readonly trackers: readonly (readonly string[])[];
}

/** Wraps a URL. Throws `invalid_argument` when it is too long or neither http nor https. */
export async function createWrapper(content: WrappedContent): Promise<Wrapper> {
  const { url, isLive, sizeBytes } = content;
  if (!isWrappable(url)) throw new MillraceError("invalid_argument", "invalid url: it cannot be wrapped");
  const infohash = await infohashOf(infoBytesOf(url));
  return {
    infohash,
    infohashHex: toHex(infohash),
    url,
    name: [...content.name].slice(0, MAX_NAME_CHARS).join(""),
    isLive,
    mime: /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(content.mime) ? content.mime : "application/octet-stream",
    sizeBytes: Number.isSafeInteger(sizeBytes) && sizeBytes > 0 ? sizeBytes : 0,
    trackers: [],
  };
}

/** The transport file of a wrapper. */
export function encodeWrapper(wrapper: WrappedContent): Uint8Array<ArrayBuffer> {
  return encodeOuter(infoBytesOf(wrapper.url), {
    // Absent means unknown.
    live: wrapper.isLive === -1 ? undefined : wrapper.isLive,
    mime: wrapper.mime,
    size: wrapper.sizeBytes,
    title: wrapper.name,
  });
}

/** True for the transport file of a wrapper; false for anything else, malformed files included. */
export function isWrapperFile(bytes: Uint8Array): boolean {
  try {
    return wrappedUrl(bytes) !== null;
  } catch (error) {
    if (error instanceof MillraceError) return false;
    throw error;
  }
}

/** Reads the transport file of a wrapper. Throws `bad_transport_file`. */
export async function parseWrapper(bytes: Uint8Array): Promise<Wrapper> {
  const url = wrappedUrl(bytes);
  if (url === null || !isWrappable(url)) {
    throw new MillraceError("bad_transport_file", "bad wrapper: its url is missing");
  }
  const outer = decodeBencode(bytes, { errorCode: "bad_transport_file" });
  const fields = isDictionary(outer) ? outer : {};
  const text = (name: string) => fields[name] instanceof Uint8Array ? decodeName(fields[name] as Uint8Array) : "";
  return await createWrapper({
    url,
    name: text("title"),
    isLive: integerWithin(fields["live"], 0, 1) as 0 | 1 | null ?? -1,
    mime: text("mime"),
    sizeBytes: integerWithin(fields["size"], 0, Number.MAX_SAFE_INTEGER) ?? 0,
  });
}

function wrappedUrl(bytes: Uint8Array): string | null {
  if (bytes.length > MAX_WRAPPER_BYTES) return null;
  const { info } = splitTransportFile(bytes);
  const wrapper = isDictionary(info) ? info["wrapper"] : undefined;
  if (!isDictionary(wrapper) || wrapper["v"] !== VERSION) return null;
  return wrapper["url"] instanceof Uint8Array ? decodeName(wrapper["url"]) : null;
}

function infoBytesOf(url: string): Uint8Array {
  return encodeBencode({ wrapper: { url, v: VERSION } });
}

function isWrappable(url: string): boolean {
  return url.length <= MAX_WRAPPED_URL_CHARS && /^https?:\/\/[^/]/i.test(url) && URL.canParse(url);
}
