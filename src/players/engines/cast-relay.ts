/**
 * Relays streams of other engines to web pages of this one: a page reads only from its own origin, so the engine passes HLS
 * on. It relays only playlists and segments from the address that was sent, and only while the stream is played.
 */
import { deadline } from "../../bytes/deadline.ts";
import { readBounded } from "../../bytes/read-bounded.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import { randomNonce } from "./cast-identity.ts";

/** Most streams relayed at once: one for each of the most pages. */
const MAX_STREAMS = 32;
/** Longest playlist read, bytes: that of a 12-hour film has a megabyte. */
const MAX_PLAYLIST_BYTES = 2 * 1024 * 1024;
/** Deadline for a whole playlist and for the first bytes of a segment, ms: the sender may wait for its peers. */
const RESPONSE_MS = 30_000;
/** Path and query of an engine's segment: a prefix, `c`, the infohash, the number. */
const SEGMENT = /^\/[\w.~%-]{1,64}\/c\/[0-9a-f]{40}\/\d{1,9}\.ts(?:\?[\w.~%=&,-]{0,500})?$/;

/** A relayed stream. */
export interface RelayedStream {
  /** Path of its playlist on this engine, with a secret in it. */
  readonly path: string;
  close(): void;
}

/** What the relay needs of the machine. */
export interface RelayPorts {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

/** Relays streams. */
export class CastRelay {
  readonly #ports: RelayPorts;
  /** Playlist addresses of the senders, by the secret in our own path. */
  readonly #streams = new Map<string, URL>();

  constructor(ports: RelayPorts) {
    this.#ports = ports;
  }

  /** Begins to relay the HLS at `url`. Throws `too_busy`. */
  open(url: URL): RelayedStream {
    if (this.#streams.size >= MAX_STREAMS) {
      throw new MillraceError("too_busy", "too many streams are passed on to pages at once: close one");
    }
    const id = randomNonce();
    this.#streams.set(id, url);
    return { path: `/cast/media/${id}/index.m3u8`, close: () => void this.#streams.delete(id) };
  }

  /** The playlist, with its segments at `segment?of=…` beside it. Rejects with `not_found`, and as `#get`. */
  async playlist(id: string, signal: AbortSignal): Promise<string> {
    const url = this.#urlOf(id);
    const response = await this.#get(url, signal);
    const bytes = await readBounded(
      response,
      MAX_PLAYLIST_BYTES,
      () => new MillraceError("too_large", "the playlist of the other engine is too long"),
    );
    const lines = new TextDecoder().decode(bytes).split(/\r?\n/);
    if (lines[0] !== "#EXTM3U") throw new MillraceError("protocol_violation", "the other engine sent no playlist");
    return lines.map((line) => line === "" || line.startsWith("#") ? withoutAddresses(line) : here(line, url)).join(
      "\n",
    );
  }

  /** A segment, named by the value that `playlist` wrote after `of=`. Rejects with `not_found`, `invalid_argument`, and as `#get`. */
  async segment(id: string, of: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const url = this.#urlOf(id);
    if (!SEGMENT.test(of)) throw new MillraceError("invalid_argument", "this is no segment of an engine");
    return await this.#get(new URL(of, url.origin), signal);
  }

  #urlOf(id: string): URL {
    const url = this.#streams.get(id);
    if (url === undefined) throw new MillraceError("not_found", "this stream is not passed on any more");
    return url;
  }

  /** Fetches `url`. Rejects with `connection_failed`, `timeout` or the signal's reason. `signal` also ends the body. */
  async #get(url: URL, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const leaving = new AbortController();
    const late = deadline(this.#ports.clock, RESPONSE_MS, signal);
    late.signal.addEventListener("abort", () => leaving.abort(late.signal.reason), { once: true });
    try {
      const either = AbortSignal.any([signal, leaving.signal]);
      const response = await this.#ports.fetch(url, { redirect: "manual", signal: either });
      if (response.status === 200 && response.body !== null) return response.body;
      await response.body?.cancel();
      throw new MillraceError("connection_failed", `the other engine responds with ${response.status}`);
    } catch (cause) {
      if (late.signal.aborted) throw abortError(late.signal);
      if (cause instanceof MillraceError) throw cause;
      throw new MillraceError("connection_failed", `the other engine at ${url.host} does not respond`, { cause });
    } finally {
      late.cancel();
    }
  }
}

/** Our address for a segment, in place of the sender's. */
function here(line: string, playlist: URL): string {
  const url = URL.canParse(line, playlist) ? new URL(line, playlist) : null;
  const of = url === null ? "" : url.pathname + url.search;
  if (url?.origin !== playlist.origin || !SEGMENT.test(of)) {
    throw new MillraceError("protocol_violation", "the other engine's playlist leads elsewhere");
  }
  return `segment?of=${encodeURIComponent(of)}`;
}

/** Refuses attributes with addresses; engines send none in the playlists of films and broadcasts. */
function withoutAddresses(line: string): string {
  if (/URI=/i.test(line)) throw new MillraceError("protocol_violation", "the other engine's playlist leads elsewhere");
  return line;
}
