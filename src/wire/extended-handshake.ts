/** The BEP 10 handshake: ours, and the trusted part of the far end's. */
import bencode from "bencode";
import { addressBytes, addressText } from "./address.ts";
import { type BencodeDictionary, integerWithin } from "../bytes/bencode.ts";
import { hasCode } from "../errors.ts";
import { decodeDictionary } from "./bencode-check.ts";
import { DEFAULT_PEER_REQUEST_QUEUE_LIMIT, MAX_METADATA_BYTES } from "./limits.ts";
import { liveField, readLiveOffer } from "./live-exchange.ts";
import type { ExtendedHandshake, LiveOffer } from "./types.ts";

/** Longest client name and extension name kept, characters. */
const MAX_NAME_LENGTH = 64;

/** Extension names kept. Clients offer about ten. */
const MAX_EXTENSIONS = 64;

/** Larger `reqq` values are cut to this: they would change nothing. */
const MAX_REQUEST_QUEUE_LIMIT = 65_535;

/** Fields of our handshake besides `m`, which the library adds. */
export interface OwnHandshake {
  readonly clientName: string;
  readonly requestQueueLimit: number;
  readonly listenPort: number | null;
  readonly uploadOnly: boolean;
  /** Address of the far end, sent to it as `yourip`. */
  readonly remoteHost: string;
  readonly live: LiveOffer | null;
}

/** Our handshake as a dictionary for the library. */
export function ownHandshake(own: OwnHandshake): Record<string, unknown> {
  const handshake: Record<string, unknown> = { v: own.clientName, reqq: own.requestQueueLimit };
  if (own.listenPort !== null) handshake.p = own.listenPort;
  if (own.uploadOnly) handshake.upload_only = 1;
  if (own.live !== null) handshake.live = liveField(own.live);
  const yourIp = addressBytes(own.remoteHost);
  if (yourIp !== null) handshake.yourip = yourIp;
  return handshake;
}

function text(value: unknown): string | null {
  if (!(value instanceof Uint8Array)) return null;
  // deno-lint-ignore no-control-regex
  const clean = new TextDecoder().decode(value.subarray(0, 4 * MAX_NAME_LENGTH)).replace(/[\u0000-\u001f\u007f]/g, "");
  return clean.slice(0, MAX_NAME_LENGTH);
}

function extensionIds(dictionary: BencodeDictionary): Record<string, number> {
  const ids: Record<string, number> = {};
  const offered = dictionary.m;
  if (typeof offered !== "object" || offered === null || offered instanceof Uint8Array) return ids;
  for (const [name, value] of Object.entries(offered).slice(0, MAX_EXTENSIONS)) {
    // Id 0 withdraws an extension (BEP 10), so it is passed on.
    const id = integerWithin(value, 0, 255);
    if (id !== null && name.length <= MAX_NAME_LENGTH && name !== "__proto__") ids[name] = id;
  }
  return ids;
}

function readDictionary(payload: Uint8Array): BencodeDictionary | null {
  try {
    return decodeDictionary(payload).dictionary;
  } catch (error) {
    if (hasCode(error, "protocol_violation")) return null;
    throw error;
  }
}

/**
 * Reads the far end's handshake. `message` is what the library sees: only the fields known
 * here, each of the right type and range. Null when it is no bencoded dictionary.
 */
export function readExtendedHandshake(payload: Uint8Array): { info: ExtendedHandshake; message: Uint8Array } | null {
  const dictionary = readDictionary(payload);
  if (dictionary === null) return null;
  const ids = extensionIds(dictionary);
  const metadataBytes = integerWithin(dictionary.metadata_size, 1, MAX_METADATA_BYTES);
  const queueLimit = integerWithin(dictionary.reqq, 1, Number.MAX_SAFE_INTEGER) ?? DEFAULT_PEER_REQUEST_QUEUE_LIMIT;
  const info: ExtendedHandshake = {
    client: text(dictionary.v),
    requestQueueLimit: Math.min(queueLimit, MAX_REQUEST_QUEUE_LIMIT),
    metadataBytes,
    uploadOnly: integerWithin(dictionary.upload_only, 1, Number.MAX_SAFE_INTEGER) !== null,
    listenPort: integerWithin(dictionary.p, 1, 65535),
    yourIp: dictionary.yourip instanceof Uint8Array ? addressText(dictionary.yourip) : null,
    extensions: Object.keys(ids).filter((name) => ids[name] !== 0),
    live: ids["live1"] ? readLiveOffer(dictionary) : null,
  };
  const clean = bencode.encode(metadataBytes === null ? { m: ids } : { m: ids, metadata_size: metadataBytes });
  const message = new Uint8Array(2 + clean.length);
  message[0] = 20;
  message.set(clean, 2);
  return { info, message };
}
