/** Reads one address of a channel, once: a transport stream or a radio over HTTP, or the segments of an HLS playlist. */
import { concatBytes } from "../../bytes/hex.ts";
import { turnWhenDue } from "../../bytes/turn.ts";
import { headersFor, readPlayerAddress } from "../../content/analysis/player-address.ts";
import type { FetchPorts, OpenedUrl } from "../../content/fetch-guard.ts";
import { MillraceError } from "../../errors.ts";
import { hlsEvents } from "../../inputs/hls.ts";
import { SENDER_PACE } from "../../inputs/http.ts";
import { within } from "../../inputs/input.ts";
import { paced } from "../../inputs/pacer.ts";
import { inPackets } from "../../inputs/packets.ts";
import { type PlaylistText, playlistText } from "../../inputs/playlist-text.ts";
import { HEAD_BYTES, isPacked, isPlaylist, isTransportStream } from "../../inputs/sniff.ts";
import { describeUrl } from "../../inputs/spec.ts";
import { SourceWeb } from "../../inputs/web.ts";
import { RadioMuxer, radioSyntax, TitleFilter } from "./radio.ts";
import { SegmentFormats } from "./segment-formats.ts";
import type { LiveInputEvent } from "../../live/broadcast/input.ts";
import type { Logger } from "../../ports.ts";

/** What reading an address needs. */
export type AddressPorts = FetchPorts & { readonly log: Logger };

/** How an address is read. */
export interface AddressRules {
  /** Whether it may lead into the private network. */
  readonly allowPrivate: boolean;
  /** For how long nothing may come, ms. */
  readonly silenceMs: number;
  /** Called with the title of what a radio plays now. */
  readonly titled: (title: string) => void;
}

/** Servers of radio send titles between the sound to those who ask. */
const ASKS_FOR_TITLES = { "icy-metadata": "1" };
/**
 * How far ahead of its time the media of a playlist leaves, ms: servers name some segments at once, and with this much
 * a playlist of ours can be given out at once, too.
 */
const HLS_LEAD_MS = 4000;

/**
 * The events of `address`. Returns whether it has ended for good: a recording has, and a connection that the server
 * closed has not. Throws what is wrong with it, `timeout` when nothing comes for `silenceMs`.
 */
export async function* addressEvents(
  ports: AddressPorts,
  address: string,
  { allowPrivate, silenceMs, titled }: AddressRules,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, boolean> {
  const player = readPlayerAddress(address);
  const { url } = player;
  const rules = { allowPrivate, headersFor: (to: string) => headersFor(player, to) };
  const own = new AbortController();
  let first: PlaylistText | null = null;
  const both = AbortSignal.any([signal, own.signal]);
  try {
    const web = new SourceWeb(ports, url, rules);
    // Silence is noticed here, and sooner.
    const asked = { headers: ASKS_FOR_TITLES, idleMs: 2 * silenceMs };
    const opened = await inTime(ports, silenceMs, web.open(url, asked, both), both);
    const body = withoutTitles(opened, titled)[Symbol.asyncIterator]();
    const next = () => inTime(ports, silenceMs, body.next(), both);
    const head = await read(next, HEAD_BYTES, both);
    if (isPlaylist(head) || isPacked(head)) {
      first = await playlistText(ports.clock, chunksOf(head, next), both);
      void body.return(undefined);
      if (!isPlaylist(new TextEncoder().encode(first.text.slice(0, HEAD_BYTES)))) throw otherFormat(url, opened);
      let heardMs = ports.clock.monotonic();
      const events = hlsEvents(ports, web, url, both, {
        heard: () => heardMs = ports.clock.monotonic(),
        first: { playlist: first, url: opened.url },
        leadMs: HLS_LEAD_MS,
        converter: (keepsTimes) => new SegmentFormats(keepsTimes),
        refusal: (reason) => `${describeUrl(url)} cannot be played: ${reason}`,
      });
      yield* watched(ports, events, silenceMs, () => heardMs, both);
      return true;
    }
    const syntax = isTransportStream(head) ? null : radioSyntax(head);
    if (syntax === null && !isTransportStream(head)) throw otherFormat(url, opened);
    const radio = syntax === null ? null : new RadioMuxer(syntax);
    const packets = (bytes: Uint8Array) => radio === null ? bytes : radio.push(bytes);
    const rest = async function* (): AsyncGenerator<LiveInputEvent, void> {
      for await (const chunk of chunksOf(head, next)) yield { kind: "data", bytes: packets(chunk) };
    };
    yield* paced(inPackets(rest()), ports.clock, SENDER_PACE, both);
    return opened.headers.has("content-length");
  } finally {
    first?.release();
    own.abort(new MillraceError("closed", "the address is no longer read"));
  }
}

/** The body of a response without the titles of what it plays. */
async function* withoutTitles(
  { body, headers }: OpenedUrl,
  titled: (title: string) => void,
): AsyncGenerator<Uint8Array> {
  const interval = headers.get("icy-metaint") ?? "";
  const filter = /^[1-9]\d{0,6}$/.test(interval) ? new TitleFilter(Number(interval), titled) : null;
  for await (const chunk of body) yield filter === null ? chunk : filter.push(chunk);
}

/** What is wrong with an address that sends neither. */
function otherFormat(url: string, { headers }: OpenedUrl): MillraceError {
  const type = /^[\w.+-]{1,60}\/[\w.+-]{1,60}/.exec(headers.get("content-type") ?? "")?.[0] ?? "no type";
  return new MillraceError("unsupported_media", `${describeUrl(url)} sends neither MPEG TS, HLS nor radio (${type})`);
}

/** `promise`, which is given up after `silenceMs`. */
async function inTime<T>(
  { clock }: AddressPorts,
  silenceMs: number,
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const result = await within(clock, silenceMs, promise.then((value) => ({ value })), signal);
  if (result === null) throw silent(silenceMs);
  return result.value;
}

function silent(silenceMs: number, reason: string | null = null): MillraceError {
  const why = reason === null ? "" : `: ${reason}`;
  return new MillraceError("timeout", `nothing came for ${silenceMs / 1000} s${why}`);
}

/** `head`, which was read already, and what follows it. */
async function* chunksOf(
  head: Uint8Array,
  next: () => Promise<IteratorResult<Uint8Array>>,
): AsyncGenerator<Uint8Array, void> {
  yield head;
  for (let chunk = await next(); !chunk.done; chunk = await next()) yield chunk.value;
}

/** The bytes from here on: `atLeast`, with the rest of the last chunk, or all that come. */
async function read(
  next: () => Promise<IteratorResult<Uint8Array>>,
  atLeast: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < atLeast) {
    // A server may send without end, in the smallest chunks, and all of them have arrived.
    await turnWhenDue(signal);
    const { done, value } = await next();
    if (done) break;
    parts.push(value);
    bytes += value.length;
  }
  return concatBytes(parts);
}

/** `events` as long as data comes; `heardMs` returns when bytes of them came last, which may not make data yet. */
async function* watched(
  { clock }: AddressPorts,
  events: AsyncGenerator<LiveInputEvent, void>,
  silenceMs: number,
  heardMs: () => number,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  let reason: string | null = null;
  let patienceMs = silenceMs;
  let dataMs = clock.monotonic();
  try {
    for (let pending = events.next();; pending = events.next()) {
      let next: IteratorResult<LiveInputEvent, void> | null = null;
      while (next === null) {
        const leftMs = Math.max(dataMs, heardMs()) + patienceMs - clock.monotonic();
        if (leftMs <= 0) throw silent(patienceMs, reason);
        next = await within(clock, leftMs, pending, signal);
      }
      if (next.done) return;
      // A loss is no sign of life: a server that is down has one every few seconds.
      if (next.value.kind === "lost") reason = next.value.reason;
      else {
        dataMs = clock.monotonic();
        // A player has the lead, too, before it shows nothing new.
        patienceMs = silenceMs + HLS_LEAD_MS;
      }
      yield next.value;
    }
  } finally {
    // Not awaited: it may wait for a server that hangs.
    void events.return().catch(() => {});
  }
}
