/** Datagrams of the UDP tracker protocol (BEP 15, BEP 41). */
import { MillraceError } from "../errors.ts";
import { COMPACT4_BYTES, COMPACT6_BYTES, parseCompact } from "./addresses.ts";
import { type Announce, type AnnounceAnswer, type AnnounceEvent, trackerFailure } from "./announce.ts";
import { shortText } from "./bencode.ts";

/** First field of a connect request (BEP 15). */
const PROTOCOL_ID = 0x41727101980n;

/** BEP 15 actions. */
const CONNECT = 0;
const ANNOUNCE = 1;
const ERROR = 3;

/** BEP 15 event numbers. */
const EVENTS: Readonly<Record<AnnounceEvent, number>> = { "": 0, completed: 1, started: 2, stopped: 3 };

const CONNECT_BYTES = 16;
const ANNOUNCE_BYTES = 98;
/** Length of an announce reply before its peers, bytes. */
const ANSWER_BYTES = 20;

/** BEP 41 option: a piece of the URL's path and query, at most 255 bytes. */
const URL_DATA = 2;
const MAX_URL_DATA_BYTES = 255;

/** Longest path and query sent (BEP 41): passkeys are below 100 characters. */
const MAX_PATH_BYTES = 1024;

function malformed(reason: string): MillraceError {
  return new MillraceError("protocol_violation", `malformed tracker datagram: ${reason}`);
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The connect request. */
export function connectRequest(transactionId: number): Uint8Array {
  const bytes = new Uint8Array(CONNECT_BYTES);
  const fields = view(bytes);
  fields.setBigUint64(0, PROTOCOL_ID);
  fields.setUint32(8, CONNECT);
  fields.setUint32(12, transactionId);
  return bytes;
}

/** The announce; `path` is the URL's path and query, sent as in BEP 41 unless it is empty or "/". */
export function announceRequest(
  connectionId: bigint,
  transactionId: number,
  announce: Announce,
  path: string,
): Uint8Array {
  const options = urlData(path);
  const bytes = new Uint8Array(ANNOUNCE_BYTES + options.length);
  const fields = view(bytes);
  fields.setBigUint64(0, connectionId);
  fields.setUint32(8, ANNOUNCE);
  fields.setUint32(12, transactionId);
  bytes.set(announce.infohash, 16);
  bytes.set(announce.peerId, 36);
  fields.setBigUint64(56, BigInt(announce.downloadedBytes));
  fields.setBigUint64(64, BigInt(announce.leftBytes));
  fields.setBigUint64(72, BigInt(announce.uploadedBytes));
  fields.setUint32(80, EVENTS[announce.event]);
  fields.setUint32(84, 0); // our address: the sender's
  fields.setUint32(88, announce.key);
  fields.setInt32(92, announce.numWant);
  fields.setUint16(96, announce.port);
  bytes.set(options, ANNOUNCE_BYTES);
  return bytes;
}

function urlData(path: string): Uint8Array {
  const data = new TextEncoder().encode(path);
  if (data.length <= 1 || data.length > MAX_PATH_BYTES) return new Uint8Array();
  const options: number[] = [];
  for (let at = 0; at < data.length; at += MAX_URL_DATA_BYTES) {
    const part = data.subarray(at, at + MAX_URL_DATA_BYTES);
    options.push(URL_DATA, part.length, ...part);
  }
  return new Uint8Array(options);
}

/** The transaction id of a reply; null when the datagram is too short to be one. */
export function transactionOf(datagram: Uint8Array): number | null {
  return datagram.length < 8 ? null : view(datagram).getUint32(4);
}

/** Throws `tracker` when the datagram is an error, `protocol_violation` when it is not the expected action. */
function expectAction(datagram: Uint8Array, action: number, leastBytes: number): DataView {
  const fields = view(datagram);
  const actual = datagram.length < 8 ? -1 : fields.getUint32(0);
  if (actual === ERROR) throw trackerFailure(shortText(datagram.subarray(8)) || "refused without a reason");
  if (actual !== action) throw malformed("unexpected action");
  if (datagram.length < leastBytes) throw malformed("too short");
  return fields;
}

/** The connection id of a connect reply. */
export function parseConnect(datagram: Uint8Array): bigint {
  return expectAction(datagram, CONNECT, CONNECT_BYTES).getBigUint64(8);
}

/** The reply to an announce; `family` is that of the tracker's address (BEP 15: it decides the format of the peers). */
export function parseAnnounce(datagram: Uint8Array, family: 4 | 6): AnnounceAnswer {
  const fields = expectAction(datagram, ANNOUNCE, ANSWER_BYTES);
  return {
    peers: parseCompact(datagram.subarray(ANSWER_BYTES), family === 4 ? COMPACT4_BYTES : COMPACT6_BYTES),
    intervalMs: fields.getUint32(8) * 1000 || null,
    minIntervalMs: null,
    leechers: fields.getUint32(12),
    seeders: fields.getUint32(16),
    warning: null,
    trackerId: null,
  };
}
