/** An HLS address as a source: its segments in order, paced by the clock in them. */
import { readBounded } from "../bytes/read-bounded.ts";
import { type ErrorCode, hasCode, MillraceError } from "../errors.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import { type FollowStep, HlsFollower } from "./hls-follow.ts";
import {
  chooseVariant,
  type MasterList,
  MAX_PLAYLIST_BYTES,
  type MediaList,
  parseHls,
} from "../content/hls-playlist.ts";
import { type HlsVariables, NO_VARIABLES } from "../content/hls-variables.ts";
import { sleep } from "../bytes/deadline.ts";
import { SegmentKeys } from "./hls-key.ts";
import { reasonOf } from "./input.ts";
import { paced } from "./pacer.ts";
import { inPackets } from "./packets.ts";
import type { SourcePorts } from "./ports.ts";
import { type AheadItem, readAhead, SEGMENT_START } from "./read-ahead.ts";
import { FatalSourceError, RETRY_FIRST_MS, RETRY_MOST_MS } from "./retry.ts";
import { checkedHead, isTransportStream } from "./sniff.ts";
import { describeUrl } from "./spec.ts";
import type { SourceWeb } from "./web.ts";

/** Largest segment, bytes: ten seconds at 50 Mb/s. It is sent as it comes; one that goes on is left at this point. */
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Tries for one segment, at least; after the last it is left out. */
const SEGMENT_TRIES = 3;
/**
 * A segment of a live playlist is tried for as long as it lasts: that much is still to be sent of those before it. Servers
 * may name a segment some seconds before they have it. At most this, ms.
 */
const SEGMENT_PATIENCE_MS = 10_000;
/** Master playlists that lead to master playlists are a mistake beyond one. */
const MAX_MASTERS = 2;
/** Speed at which a backlog is made up, so little that no player's clock minds. */
const CATCH_UP_RATE = 1.05;

/** How a playlist is read. */
export interface HlsOptions {
  /** The playlist, if it was fetched already. */
  readonly first?: { readonly text: string; readonly url: string };
  /** How far ahead of its time data may leave, ms. Default 0. */
  readonly leadMs?: number;
  /** What is said of segments that cannot be sent as they are. Default: advice for broadcasters. */
  readonly refusal?: (reason: string) => string;
  /** Makes transport packets of segments in other formats. Default: none are taken. */
  readonly converter?: SegmentConverter;
}

/** Makes transport packets of segments that have none. */
export interface SegmentConverter {
  /** Whether it takes the segment that begins with `head`, which is next. */
  begin(head: Uint8Array): boolean;
  /** The packets that the next bytes of that segment complete. */
  push(bytes: Uint8Array): Uint8Array;
}

/** Reads the broadcast or recording at `url` until it ends. */
export async function* hlsEvents(
  ports: Pick<SourcePorts, "clock" | "log">,
  web: SourceWeb,
  url: string,
  signal: AbortSignal,
  options: HlsOptions = {},
): AsyncGenerator<LiveInputEvent, void> {
  const reader = new HlsReader(ports, web, url, signal, options);
  const pace = { leadMs: options.leadMs ?? 0, rate: () => reader.isBehind ? CATCH_UP_RATE : 1, needsClock: true };
  yield* paced(inPackets(readAhead(reader.events())), ports.clock, pace, signal);
}

type Segment = MediaList["segments"][number];

class HlsReader {
  readonly #ports: Pick<SourcePorts, "clock" | "log">;
  readonly #web: SourceWeb;
  readonly #url: string;
  readonly #signal: AbortSignal;
  readonly #follower = new HlsFollower();
  readonly #keys: SegmentKeys;
  readonly #options: HlsOptions;
  /** The playlist that was fetched already; null: it has been read. */
  #first: HlsOptions["first"] | null;
  #hasSent = false;
  /** The present segment has to be converted. */
  #isConverted = false;

  constructor(
    ports: Pick<SourcePorts, "clock" | "log">,
    web: SourceWeb,
    url: string,
    signal: AbortSignal,
    options: HlsOptions,
  ) {
    this.#keys = new SegmentKeys((at) => web.open(at, {}, signal));
    this.#options = options;
    this.#first = options.first ?? null;
    this.#ports = ports;
    this.#web = web;
    this.#url = url;
    this.#signal = signal;
  }

  /** More is waiting than a reader at the edge has. */
  get isBehind(): boolean {
    return this.#follower.isBehind;
  }

  async *events(): AsyncGenerator<AheadItem, void> {
    const { clock } = this.#ports;
    let media: { url: string; variables: HlsVariables } | null = null;
    let pauseMs = RETRY_FIRST_MS;
    for (;;) {
      let step: FollowStep;
      try {
        const found = await this.#mediaList(media ?? { url: this.#url, variables: NO_VARIABLES });
        media = found;
        step = this.#follower.update(found.list, clock.monotonic());
        pauseMs = RETRY_FIRST_MS;
      } catch (error) {
        if (this.#signal.aborted || error instanceof FatalSourceError) throw error;
        this.#ports.log.log("debug", "the HLS playlist could not be fetched", { reason: reasonOf(error) });
        if (this.#follower.isStale(clock.monotonic())) {
          yield { kind: "lost", reason: reasonOf(error) };
          // The address of the variant may have changed with the server.
          media = null;
        }
        await sleep(clock, pauseMs, this.#signal);
        pauseMs = Math.min(2 * pauseMs, RETRY_MOST_MS);
        continue;
      }
      if (step.lost !== null) yield { kind: "lost", reason: step.lost };
      for (let segment = this.#follower.next(); segment !== null; segment = this.#follower.next()) {
        yield SEGMENT_START;
        if (segment.isDiscontinuity) yield { kind: "lost", reason: "the playlist has a discontinuity" };
        if (segment.isGap) {
          yield { kind: "lost", reason: `segment ${segment.sequence} is missing at the source, which says so` };
          continue;
        }
        yield* this.#segment(segment, !step.hasEnded);
        // A live playlist may have moved on in the meantime.
        if (!step.hasEnded && clock.monotonic() - step.atMs >= step.reloadMs) break;
      }
      if (step.hasEnded) return;
      await sleep(clock, Math.max(0, step.atMs + step.reloadMs - clock.monotonic()), this.#signal);
    }
  }

  /** The media playlist at `from`, or the one that a master playlist there leads to. */
  async #mediaList(
    from: { readonly url: string; readonly variables: HlsVariables },
  ): Promise<{ url: string; variables: HlsVariables; list: MediaList }> {
    let { url, variables } = from;
    for (let i = 0; i <= MAX_MASTERS; i++) {
      const list = await this.#load(url, variables);
      if (list.kind === "media") return { url, variables, list };
      const variant = chooseVariant(list);
      if (variant === null) throw this.#fault("bad_media", `${describeUrl(url)} names no stream to play`);
      if (variant.hasSeparateAudio) {
        this.#ports.log.log(
          "warn",
          `the sound of ${
            describeUrl(url)
          } is in a playlist of its own and is left out; with ffmpeg:ADDRESS as the source it is not`,
        );
      }
      url = variant.url;
      variables = list.variables;
    }
    throw this.#fault("bad_media", `${describeUrl(url)} leads from playlist to playlist`);
  }

  async #load(url: string, variables: HlsVariables): Promise<MediaList | MasterList> {
    const first = this.#first;
    this.#first = null;
    if (first) return parseHls(first.text, first.url, variables);
    const opened = await this.#web.open(url, { maxBytes: MAX_PLAYLIST_BYTES }, this.#signal);
    const tooLarge = () => new MillraceError("too_large", "the HLS playlist is too large");
    const bytes = await readBounded(opened.body, MAX_PLAYLIST_BYTES, tooLarge);
    return parseHls(new TextDecoder().decode(bytes), opened.url, variables);
  }

  /** A segment as it comes, and a loss where the rest of it cannot be fetched. */
  async *#segment(segment: Segment, isLive: boolean): AsyncGenerator<LiveInputEvent, void> {
    const lost = { kind: "lost", reason: `segment ${segment.sequence} could not be fetched` } as const;
    if (segment.unfit !== null) {
      this.#refuse(segment.unfit);
      return yield lost;
    }
    const { clock } = this.#ports;
    const patienceMs = isLive ? Math.min(segment.durationS * 1000, SEGMENT_PATIENCE_MS) : 0;
    const untilMs = clock.monotonic() + patienceMs;
    let sentBytes = 0;
    for (let left = SEGMENT_TRIES - 1;; left--) {
      try {
        for await (const bytes of this.#bytes(segment, sentBytes)) {
          sentBytes += bytes.length;
          yield { kind: "data", bytes: this.#isConverted ? this.#options.converter!.push(bytes) : bytes };
        }
        return;
      } catch (error) {
        if (this.#signal.aborted || error instanceof FatalSourceError) throw error;
        // Another try would bring the same.
        const isFinal = hasCode(error, "too_large") || hasCode(error, "bad_media");
        if (isFinal || (left <= 0 && clock.monotonic() >= untilMs)) {
          this.#ports.log.log("warn", `segment ${segment.sequence} of the source failed`, { reason: reasonOf(error) });
          return yield lost;
        }
        await sleep(clock, RETRY_FIRST_MS, this.#signal);
      }
    }
  }

  /** The bytes of a segment from `from` on: those before were sent when an earlier try broke off. */
  async *#bytes({ url, range, key }: Segment, from: number): AsyncGenerator<Uint8Array, void> {
    const headers: Record<string, string> = range === null
      ? {}
      : { range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
    const opened = await this.#web.open(url, { headers, maxBytes: MAX_SEGMENT_BYTES }, this.#signal);
    // A server without ranges sends all of it.
    const isWhole = range !== null && opened.status === 200;
    const part = isWhole ? slice(opened.body, range.offset, range.offset + range.length) : opened.body;
    const plain = key === null ? part : this.#keys.decrypted(part, key);
    const checked = checkedHead(plain, (head) => {
      const isPlain = isTransportStream(head);
      // Of a segment that broke off, the same bytes come again, and those that were sent are left out.
      this.#isConverted = !isPlain && (from > 0 ? this.#isConverted : this.#options.converter?.begin(head) === true);
      if (isPlain || this.#isConverted) return;
      const reason = "its segments are no MPEG TS";
      this.#refuse(reason);
      throw new MillraceError("bad_media", reason);
    });
    for await (const bytes of slice(checked, from, Infinity)) {
      this.#hasSent = true;
      yield bytes;
    }
  }

  /** At the start this is a mistake of the user; later it is one of the server, which may mend it. */
  #fault(code: ErrorCode, message: string): MillraceError {
    return new (this.#hasSent ? MillraceError : FatalSourceError)(code, message);
  }

  /** A segment that is no transport stream at the start never will be; later it is an insertion that ends. */
  #refuse(reason: string): void {
    if (this.#hasSent) return;
    const { refusal = forBroadcasters(this.#url) } = this.#options;
    throw new FatalSourceError("unsupported_media", refusal(reason));
  }
}

function forBroadcasters(url: string): (reason: string) => string {
  return (reason) =>
    `${
      describeUrl(url)
    } cannot be broadcast as it is: ${reason}; with ffmpeg installed, ffmpeg:ADDRESS as the source may do`;
}

/** The bytes `[from, to)` of what `chunks` are together. */
async function* slice(chunks: AsyncIterable<Uint8Array>, from: number, to: number): AsyncGenerator<Uint8Array, void> {
  let at = 0;
  for await (const chunk of chunks) {
    const part = chunk.subarray(Math.max(0, from - at), Math.max(0, to - at));
    at += chunk.length;
    if (part.length > 0) yield part;
    if (at >= to) return;
  }
}
