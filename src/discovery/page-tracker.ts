/** Peers in web browsers: trackers that introduce them over WebSocket, and the connections to them by WebRTC. */
import { deadline } from "../bytes/deadline.ts";
import { deferred } from "../bytes/deferred.ts";
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, PageConnection, PagePort, SocketAddress, TcpConnection, WebSocketConnection } from "../ports.ts";
import { type Announce, type AnnounceAnswer, type TrackerAnnouncer, trackerFailure } from "./announce.ts";
import { cleanDescription } from "./page-description.ts";
import {
  announceText,
  answerText,
  type Described,
  MAX_MESSAGE_CHARS,
  type PageTrackerMessage,
  readMessage,
} from "./page-tracker-messages.ts";
import type { ServerScope } from "./types.ts";

/** Connections to browsers in the engine, those that are being made included: each takes as much work as twenty by TCP. */
const MAX_CONNECTIONS = 24;

/** Offers of one announce: each opens a socket. WebTorrent's pages make five. */
const MAX_OFFERS = 5;

/** An offer waits this long for its answer, ms, and an answered one for the connection. */
const OFFER_LIFE_MS = 50_000;
const CONNECT_TIMEOUT_MS = 20_000;

/** Time for the tracker to answer, ms. */
const ANSWER_TIMEOUT_MS = 15_000;

/** What all trackers of pages share. */
export interface PageTrackerParts {
  readonly clock: Clock;
  readonly pages: PagePort;
  readonly slots: PageSlots;
  /** Literal addresses of the server, which the torrent `holder` names; rejects when it may not be asked. */
  addressesOf(
    url: URL,
    options: { readonly scope: ServerScope; readonly holder: string; readonly signal: AbortSignal },
  ): Promise<readonly string[]>;
  /** Whether a peer at `address`, which the tracker at `from` passed on, may be sent anything. */
  allows(address: SocketAddress, from: string): boolean;
  /** Whether a peer that the tracker at `from` introduces may learn this address of ours. */
  tells(host: string, from: string): boolean;
  /** Takes an open connection. */
  take(connection: TcpConnection): void;
}

/** Places for connections to browsers, in the whole engine. */
export class PageSlots {
  #used = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** How many are free. */
  get free(): number {
    return MAX_CONNECTIONS - this.#used;
  }

  /** Takes one, if there is any, and returns what gives it back. */
  take(): (() => void) | null {
    if (this.free === 0) return null;
    this.#used++;
    let isTaken = true;
    return () => {
      if (isTaken) this.#used--;
      isTaken = false;
    };
  }

  /** Begins one connection at a time: each makes keys, and many at once would hold up everybody else. */
  inTurn<T>(begin: () => Promise<T>): Promise<T> {
    const begun = this.#last.then(begin);
    this.#last = begun.catch(() => {});
    return begun;
  }
}

interface Attempt {
  readonly connection: PageConnection;
  end(): void;
}

/** One torrent at one tracker of pages. Its connection stays open from the first announce to the last, for offers. */
class PageTracker {
  readonly #parts: PageTrackerParts;
  readonly #url: URL;
  readonly #scope: () => ServerScope;
  #socket: WebSocketConnection | null = null;
  #trackerId: string | null = null;
  #announce: Announce | null = null;
  #waiting: ((message: PageTrackerMessage | null) => void) | null = null;
  /** Offers that wait for answers, by their ids. */
  readonly #offers = new Map<string, Attempt>();

  constructor(parts: PageTrackerParts, url: URL, scope: () => ServerScope) {
    this.#parts = parts;
    this.#url = url;
    this.#scope = scope;
  }

  async announce(announce: Announce, signal: AbortSignal): Promise<AnnounceAnswer> {
    const { clock } = this.#parts;
    this.#announce = announce;
    const isLast = announce.event === "stopped";
    const late = deadline(clock, ANSWER_TIMEOUT_MS, signal);
    try {
      if (isLast) {
        this.#socket?.send(announceText(announce, this.#trackerId, []));
        return NOTHING;
      }
      this.#socket ??= await this.#open(toHex(announce.infohash), late.signal);
      const replied = this.#nextReply(late.signal);
      this.#socket.send(announceText(announce, this.#trackerId, await this.#makeOffers()));
      const { failure, trackerId, intervalMs, minIntervalMs, seeders, leechers, warning } = await replied;
      if (failure !== null) throw trackerFailure(failure);
      this.#trackerId = trackerId ?? this.#trackerId;
      return { ...NOTHING, intervalMs, minIntervalMs, seeders, leechers, warning };
    } catch (error) {
      this.#close();
      throw error;
    } finally {
      late.cancel();
      if (isLast) this.#close();
    }
  }

  #close(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#waiting?.(null);
    for (const { end } of [...this.#offers.values()]) end();
  }

  async #open(holder: string, signal: AbortSignal): Promise<WebSocketConnection> {
    await this.#parts.pages.load();
    const addresses = await this.#parts.addressesOf(this.#url, { scope: this.#scope(), holder, signal });
    const socket = await this.#parts.pages.openWebSocket({
      ...{ url: this.#url, addresses, signal, maxMessageBytes: MAX_MESSAGE_CHARS },
      onMessage: (text) => this.#receive(text),
      onClose: () => {
        if (this.#socket === socket) this.#close();
      },
    });
    return socket;
  }

  #nextReply(signal: AbortSignal): Promise<PageTrackerMessage> {
    const { promise, resolve, reject } = deferred<PageTrackerMessage>();
    promise.catch(() => {});
    const settle = (finish: () => void) => {
      this.#waiting = null;
      signal.removeEventListener("abort", abort);
      finish();
    };
    const abort = () => settle(() => reject(signal.reason));
    signal.addEventListener("abort", abort, { once: true });
    this.#waiting = (message) =>
      settle(() =>
        message === null ? reject(new MillraceError("connection_failed", "the tracker hung up")) : resolve(message)
      );
    return promise;
  }

  #receive(text: string): void {
    const message = readMessage(text);
    const announce = this.#announce;
    if (message === null || announce === null || this.#socket === null) return;
    const isOurs = message.infohashHex === toHex(announce.infohash);
    // A refusal may name no torrent.
    if (message.failure !== null && (isOurs || message.infohashHex === null)) return this.#waiting?.(message);
    if (!isOurs) return;
    const own = toHex(announce.peerId);
    if (message.offer !== null && message.offer.peerIdHex !== own) void this.#answer(message.offer, announce);
    if (message.answer !== null && message.answer.peerIdHex !== own) void this.#accept(message.answer);
    if (message.isReply) this.#waiting?.(message);
  }

  /** As many as there is room for; half of the places are for offers of others. */
  async #makeOffers(): Promise<{ offerIdHex: string; sdp: string }[]> {
    const { slots } = this.#parts;
    const count = Math.min(MAX_OFFERS - this.#offers.size, Math.floor(slots.free / 2));
    const made = await Promise.all(Array.from({ length: Math.max(0, count) }, () => this.#offer()));
    return made.filter((offer) => offer !== null);
  }

  async #offer(): Promise<{ offerIdHex: string; sdp: string } | null> {
    const attempt = await this.#attempt((options) => this.#parts.pages.offer(options), OFFER_LIFE_MS);
    const sdp = attempt && this.#told(attempt.connection.sdp);
    if (attempt === null || sdp === null) {
      attempt?.end();
      return null;
    }
    const offerIdHex = toHex(crypto.getRandomValues(new Uint8Array(20)));
    this.#offers.set(offerIdHex, attempt);
    attempt.connection.opened.catch(() => {}).finally(() => this.#offers.delete(offerIdHex));
    return { offerIdHex, sdp };
  }

  async #answer(offer: Described, announce: Announce): Promise<void> {
    const theirs = this.#usable(offer.sdp);
    if (theirs === null) return;
    const attempt = await this.#attempt((options) => this.#parts.pages.answer(theirs, options), CONNECT_TIMEOUT_MS);
    const sdp = attempt && this.#told(attempt.connection.sdp);
    if (attempt === null) return;
    if (sdp === null || this.#socket === null) return attempt.end();
    this.#socket.send(answerText(announce, this.#trackerId, { ...offer, sdp }));
  }

  async #accept({ offerIdHex, sdp }: Described): Promise<void> {
    const attempt = this.#offers.get(offerIdHex);
    const theirs = this.#usable(sdp);
    // Each offer is answered once.
    this.#offers.delete(offerIdHex);
    if (attempt === undefined) return;
    if (theirs === null) return attempt.end();
    await attempt.connection.accept(theirs).catch(() => attempt.end());
  }

  /** Begins a connection that must be open after `lifeMs`; null when there is no room, or it cannot begin. */
  async #attempt(
    begin: (options: Parameters<PagePort["offer"]>[0]) => Promise<PageConnection>,
    lifeMs: number,
  ): Promise<Attempt | null> {
    const { clock, slots, allows, take, tells } = this.#parts;
    const from = this.#socket?.address;
    const release = from === undefined ? null : slots.take();
    if (from === undefined || release === null) return null;
    const options = {
      usesLoopback: tells("127.0.0.1", from),
      allows: (address: SocketAddress) => allows(address, from),
    };
    const connection = await slots.inTurn(() => begin(options)).catch(() => null);
    if (connection === null) {
      release();
      return null;
    }
    const end = () => connection.close();
    const timer = clock.setTimeout(end, lifeMs);
    connection.opened.then((channel) => take(held(channel, release)), release).finally(() => timer.cancel());
    return { connection, end };
  }

  #usable(sdp: string): string | null {
    const from = this.#socket?.address;
    return from === undefined ? null : cleanDescription(sdp, (address) => this.#parts.allows(address, from));
  }

  #told(sdp: string): string | null {
    const from = this.#socket?.address;
    return from === undefined ? null : cleanDescription(sdp, ({ host }) => this.#parts.tells(host, from));
  }
}

const NOTHING: AnnounceAnswer = {
  peers: [],
  intervalMs: null,
  minIntervalMs: null,
  seeders: null,
  leechers: null,
  warning: null,
  trackerId: null,
};

/** `connection`, which calls `release` when it is over. */
function held(connection: TcpConnection, release: () => void): TcpConnection {
  const { open } = connection;
  connection.open = (handlers) =>
    open.call(connection, {
      data: (chunk) => handlers.data(chunk),
      end: () => handlers.end(),
      drain: () => handlers.drain(),
      close: (error) => {
        release();
        handlers.close(error);
      },
    });
  return connection;
}

/** The announcer of one torrent at a tracker of pages; null when the address is none. */
export function pageAnnouncer(parts: PageTrackerParts, url: string, scope: () => ServerScope): TrackerAnnouncer | null {
  if (!/^wss?:\/\//i.test(url) || !URL.canParse(url)) return null;
  const tracker = new PageTracker(parts, new URL(url), scope);
  return (announce, signal) => tracker.announce(announce, signal);
}
