/** Announces to HTTP trackers (BEP 3, 7, 23, 31). */
import { upTo } from "../bytes/trim.ts";
import { type BencodeDictionary, integerWithin } from "../bytes/bencode.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import { concatBytes } from "../bytes/hex.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { COMPACT6_BYTES, type ListedPeers, parseCompact, parsePeers } from "./addresses.ts";
import { type Announce, type AnnounceAnswer, trackerFailure } from "./announce.ts";
import { decodeMessage, type MessageLimits, shortText } from "./bencode.ts";
import { fetchRedirected, type TorrentFetches } from "./redirects.ts";

/** An announce, redirects included, may take this long. */
const TIMEOUT_MS = 15_000;

/** 500 peers in the dictionary form are about 50 KB. */
const MAX_ANSWER_BYTES = 1 << 20;

/** Peers in the dictionary form: 3 levels, 7 values each. */
const LIMITS: MessageLimits = { maxBytes: MAX_ANSWER_BYTES, maxDepth: 8, maxValues: 50_000 };

/** How much of a page is read for its text, and how much of that is shown: enough for a script's warning or a title. */
const MAX_READ_BYTES = 1024;
const MAX_SHOWN_CHARS = 80;

/** UTF-8's, which editors put before a script. */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

/** Tab, line feed, carriage return, space. */
const BLANKS = new Set([0x09, 0x0a, 0x0d, 0x20]);

/** What a bencoded dictionary or list begins with. */
const CONTAINERS = new Set([0x64, 0x6c]);

/** Bounded because a `tracker id` is sent back in every later URL. */
const MAX_TRACKER_ID_BYTES = 256;

/** Longest interval accepted, seconds: larger ones are garbage. */
const MAX_SECONDS = 7 * 24 * 3600;

/** Dependencies of an announce over HTTP. */
export interface HttpTrackerContext extends TorrentFetches {
  readonly clock: Clock;
  readonly userAgent: string;
}

/** Percent-escapes bytes as BEP 3 requires: unreserved characters (RFC 3986 §2.3) stay, the rest becomes `%XX`. */
export function escapeBytes(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    const char = String.fromCharCode(byte);
    text += /[A-Za-z0-9\-._~]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}

/** The announce URL: the tracker's URL with its query, plus the announce's fields. */
export function announceUrl(tracker: string, announce: Announce): string {
  const fields = [
    `info_hash=${escapeBytes(announce.infohash)}`,
    `peer_id=${escapeBytes(announce.peerId)}`,
    `port=${announce.port}`,
    `uploaded=${announce.uploadedBytes}`,
    `downloaded=${announce.downloadedBytes}`,
    `left=${announce.leftBytes}`,
    "compact=1",
    "no_peer_id=1",
    `numwant=${announce.numWant}`,
    `key=${announce.key.toString(16).padStart(8, "0")}`,
  ];
  if (announce.event !== "") fields.push(`event=${announce.event}`);
  if (announce.trackerId !== null) fields.push(`trackerid=${escapeBytes(announce.trackerId)}`);
  const base = upTo(tracker, "#");
  return `${base}${base.includes("?") ? "&" : "?"}${fields.join("&")}`;
}

function secondsToMs(value: unknown): number | null {
  const seconds = integerWithin(value, 1, MAX_SECONDS);
  return seconds === null ? null : seconds * 1000;
}

/** `retry in` of a refusal (BEP 31): minutes, or "never". */
function retryDelay(answer: BencodeDictionary): number | null {
  const value = answer["retry in"];
  const text = shortText(value, 16);
  if (text === "never") return Infinity;
  const minutes = text !== null && /^\d{1,6}$/.test(text) ? Number(text) : integerWithin(value, 0, 1_000_000);
  return minutes === null ? null : minutes * 60_000;
}

function peers6Of(value: unknown): ListedPeers {
  if (value instanceof Uint8Array) return { peers: parseCompact(value, COMPACT6_BYTES), named: [] };
  return parsePeers(value);
}

/**
 * The dictionary of a reply. Skips a byte order mark and blank lines before it, as scripts of trackers send them. Throws
 * `protocol_violation` or `too_large`.
 */
function decodeReply(body: Uint8Array): BencodeDictionary {
  const hasMark = BYTE_ORDER_MARK.every((byte, index) => body[index] === byte);
  const rest = body.subarray(hasMark ? BYTE_ORDER_MARK.length : 0);
  const start = rest.findIndex((byte) => !BLANKS.has(byte));
  const reply = start < 0 ? new Uint8Array() : rest.subarray(start);
  if (!CONTAINERS.has(reply[0]!)) throw notBencoded(reply);
  return decodeMessage(reply, LIMITS);
}

/** Repeats what was sent instead of a reply: a page or a script's warning says what is wrong with the tracker. */
function notBencoded(reply: Uint8Array): MillraceError {
  const text = shortText(reply.subarray(0, MAX_READ_BYTES), MAX_READ_BYTES)!.replaceAll(/<[^<>]{0,200}>/g, " ");
  const shown = text.replaceAll(/\s+/g, " ").trim().slice(0, MAX_SHOWN_CHARS);
  const found = shown === "" ? "it is empty" : `it begins with "${shown}"`;
  return new MillraceError("protocol_violation", `the tracker's answer is not bencoded: ${found}`);
}

/** Reads the bencoded reply. Throws `tracker` with the failure reason, `protocol_violation` or `too_large`. */
export function parseHttpAnswer(body: Uint8Array): AnnounceAnswer {
  const answer = decodeReply(body);
  const failure = shortText(answer["failure reason"]);
  if (failure !== null) throw trackerFailure(failure || "refused without a reason", retryDelay(answer));
  const lists = [parsePeers(answer["peers"]), peers6Of(answer["peers6"])];
  const trackerId = answer["tracker id"];
  return {
    peers: lists.flatMap(({ peers }) => peers),
    named: lists.flatMap(({ named }) => named),
    intervalMs: secondsToMs(answer["interval"]),
    minIntervalMs: secondsToMs(answer["min interval"]),
    seeders: integerWithin(answer["complete"], 0, 2 ** 32),
    leechers: integerWithin(answer["incomplete"], 0, 2 ** 32),
    warning: shortText(answer["warning message"]),
    trackerId: trackerId instanceof Uint8Array && trackerId.length <= MAX_TRACKER_ID_BYTES ? trackerId : null,
  };
}

/** Announces once; takes at most 15 s. */
export async function announceHttp(
  context: HttpTrackerContext,
  tracker: string,
  announce: Announce,
  signal: AbortSignal,
): Promise<AnnounceAnswer> {
  const limit = deadline(context.clock, TIMEOUT_MS, signal, () => {
    return new MillraceError("timeout", `no answer within ${TIMEOUT_MS / 1000} s`);
  });
  let keepsFields = true;
  const onRedirect = (url: URL) => {
    keepsFields = url.search.includes("info_hash=");
  };
  try {
    const request = { headers: { "user-agent": context.userAgent }, signal: limit.signal, isLenient: true, onRedirect };
    // Called without a receiver, as the platform's own fetch requires.
    const response = await fetchRedirected(context, announceUrl(tracker, announce), request, "tracker");
    const body = await readBody(response, limit.signal);
    if (!response.ok) throw statusError(response.status, body);
    return parseHttpAnswer(body);
  } catch (error) {
    if (limit.signal.aborted) throw abortError(limit.signal);
    if (error instanceof MillraceError) throw keepsFields ? error : afterRedirect(error);
    throw new MillraceError("connection_failed", `cannot reach the tracker: ${reasonOf(error)}`, { cause: error });
  } finally {
    limit.cancel();
  }
}

/** Other clients do not add the fields again either: the new address may be a page of another kind. */
function afterRedirect({ code, message, detail }: MillraceError): MillraceError {
  const text = `${message} (the tracker redirected the announce to an address without its fields)`;
  return new MillraceError(code, text, detail === undefined ? {} : { detail });
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/** Some trackers refuse with a status and a bencoded reason; the reason says more. */
function statusError(status: number, body: Uint8Array): MillraceError {
  try {
    parseHttpAnswer(body);
  } catch (error) {
    if (error instanceof MillraceError && error.code === "tracker") return error;
  }
  return new MillraceError("tracker", `HTTP status ${status}`);
}

function isWhole(body: Uint8Array): boolean {
  try {
    decodeReply(body);
    return true;
  } catch {
    return false;
  }
}

async function readBody(response: Response, signal: AbortSignal): Promise<Uint8Array> {
  if (response.body === null) return new Uint8Array();
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let total = 0;
  try {
    for (;;) {
      const { done, value } = await withSignal(reader.read(), signal);
      if (done) break;
      total += value.length;
      if (total > MAX_ANSWER_BYTES) throw new MillraceError("too_large", "the answer is longer than 1 MiB");
      chunks.push(value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    // Some trackers announce more bytes than they send: the length of what they would have sent uncompressed.
    if (signal.aborted || hasCode(error, "too_large") || !isWhole(concatBytes(chunks))) throw error;
  }
  return concatBytes(chunks);
}
