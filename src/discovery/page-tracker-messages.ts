/**
 * Messages of trackers that web browsers use: JSON over WebSocket. No BEP describes them. Hashes, peer ids and ids of offers are
 * strings of 20 characters, one for each byte (latin1); trackers refuse hex. A tracker passes offers and answers on between peers.
 */
import { fromHex, toHex } from "../bytes/hex.ts";
import { MAX_DESCRIPTION_CHARS } from "./page-description.ts";
import type { Announce } from "./announce.ts";

/** Longest message that is read, characters: a description, escaped, and as much again. */
export const MAX_MESSAGE_CHARS = 4 * MAX_DESCRIPTION_CHARS;

/** Longest text for the user, and longest id of a tracker, characters. */
const MAX_TEXT_CHARS = 200;

const ID_CHARS = 20;

/** One side's description of a connection, with whose it is. */
export interface Described {
  /** Of the offer; in hex, 20 bytes. */
  readonly offerIdHex: string;
  /** Of the other side; in hex, 20 bytes. */
  readonly peerIdHex: string;
  readonly sdp: string;
}

/** An offer of ours. */
export type Offer = Pick<Described, "offerIdHex" | "sdp">;

/** What a tracker says, with what is malformed left out. */
export interface PageTrackerMessage {
  /** Null: about no torrent in particular. */
  readonly infohashHex: string | null;
  readonly failure: string | null;
  readonly warning: string | null;
  readonly intervalMs: number | null;
  readonly minIntervalMs: number | null;
  readonly seeders: number | null;
  readonly leechers: number | null;
  readonly trackerId: string | null;
  /** True for the reply to an announce. */
  readonly isReply: boolean;
  readonly offer: Described | null;
  readonly answer: Described | null;
}

/** An announce with offers for as many peers. */
export function announceText(
  { infohash, peerId, uploadedBytes, downloadedBytes, leftBytes, event }: Announce,
  trackerId: string | null,
  offers: readonly Offer[],
): string {
  return JSON.stringify({
    action: "announce",
    info_hash: latin1(infohash),
    peer_id: latin1(peerId),
    uploaded: uploadedBytes,
    downloaded: downloadedBytes,
    left: leftBytes,
    ...(event === "" ? {} : { event }),
    numwant: offers.length,
    ...(trackerId === null ? {} : { trackerid: trackerId }),
    offers: offers.map(({ offerIdHex, sdp }) => ({
      offer: { type: "offer", sdp },
      offer_id: latin1(fromHex(offerIdHex)),
    })),
  });
}

/** The answer to an offer; `to` as it came, with our description in it. */
export function answerText(
  { infohash, peerId }: Pick<Announce, "infohash" | "peerId">,
  trackerId: string | null,
  { offerIdHex, peerIdHex, sdp }: Described,
): string {
  return JSON.stringify({
    action: "announce",
    info_hash: latin1(infohash),
    peer_id: latin1(peerId),
    to_peer_id: latin1(fromHex(peerIdHex)),
    ...(trackerId === null ? {} : { trackerid: trackerId }),
    answer: { type: "answer", sdp },
    offer_id: latin1(fromHex(offerIdHex)),
  });
}

/** Reads a message; null when it is none. */
export function readMessage(text: string): PageTrackerMessage | null {
  if (text.length > MAX_MESSAGE_CHARS) return null;
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(fields)) return null;
  const intervalMs = secondsIn(fields["interval"]);
  return {
    infohashHex: idIn(fields["info_hash"]),
    failure: textIn(fields["failure reason"]),
    warning: textIn(fields["warning message"]),
    intervalMs,
    minIntervalMs: secondsIn(fields["min interval"]),
    seeders: countIn(fields["complete"]),
    leechers: countIn(fields["incomplete"]),
    trackerId: textIn(fields["tracker id"]),
    isReply: intervalMs !== null || countIn(fields["complete"]) !== null,
    offer: describedIn(fields, "offer"),
    answer: describedIn(fields, "answer"),
  };
}

function describedIn(fields: Record<string, unknown>, type: "offer" | "answer"): Described | null {
  const given = fields[type];
  const offerIdHex = idIn(fields["offer_id"]);
  const peerIdHex = idIn(fields["peer_id"]);
  if (!isRecord(given) || given["type"] !== type || offerIdHex === null || peerIdHex === null) return null;
  const sdp = given["sdp"];
  if (typeof sdp !== "string" || sdp.length > MAX_DESCRIPTION_CHARS) return null;
  return { offerIdHex, peerIdHex, sdp };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function idIn(value: unknown): string | null {
  if (typeof value !== "string" || value.length !== ID_CHARS) return null;
  const bytes = Array.from(value, (character) => character.charCodeAt(0));
  return bytes.length === ID_CHARS && bytes.every((byte) => byte < 256) ? toHex(Uint8Array.from(bytes)) : null;
}

function textIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.slice(0, MAX_TEXT_CHARS) : null;
}

function countIn(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function secondsIn(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value * 1000 : null;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
