/** An HLS address as a source: its segments in order, paced by the clock in them. */
import { socketTurn } from "../bytes/turn.ts";
import { type ErrorCode, hasCode, MillraceError } from "../errors.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import { type FollowStep, HlsFollower } from "./hls-follow.ts";
import {
  chooseVariant,
  type MasterList,
  MAX_PLAYLIST_BYTES,
  type MediaList,
  parseHls,
  parseLongHls,
} from "../content/hls-playlist.ts";
import { type HlsVariables, NO_VARIABLES } from "../content/hls-variables.ts";
import { sleep } from "../bytes/deadline.ts";
import { type Segment, type SegmentConverter, SegmentReader } from "./hls-segments.ts";
import { withSound } from "./hls-sound.ts";
import { reasonOf } from "./input.ts";
import { paced } from "./pacer.ts";
import { inPackets } from "./packets.ts";
import { type PlaylistText, playlistText } from "./playlist-text.ts";
import type { SourcePorts } from "./ports.ts";
import { type AheadItem, readAhead, SEGMENT_START } from "./read-ahead.ts";
import { FatalSourceError, RETRY_FIRST_MS, RETRY_MOST_MS } from "./retry.ts";
import { describeUrl } from "./spec.ts";
import type { SourceWeb } from "./web.ts";

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

/** Faults of a segment that no other try mends. */
const FINAL: readonly ErrorCode[] = ["too_large", "bad_media", "unsupported_media"];

/** How a playlist is read. */
export interface HlsOptions {
  /** The playlist, if it was fetched already. */
  readonly first?: { readonly playlist: PlaylistText; readonly url: string };
  /** How far ahead of its time data may leave, ms. Default 0. */
  readonly leadMs?: number;
  /** Called when bytes of segments came, of those with the pictures. Default: nothing. */
  readonly heard?: () => void;
  /** What is said of segments that cannot be sent as they are. Default: advice for broadcasters. */
  readonly refusal?: (reason: string) => string;
  /**
   * Makes what makes transport packets of segments in other formats, for one playlist; `keepsTimes`: its times are joined with
   * those of another. Default: none are taken.
   */
  readonly converter?: (keepsTimes: boolean) => SegmentConverter;
}

/** Longer playlists take up to half a second: they are parsed one after the other, in steps between which others have turns. */
const LONG_TEXT_CHARS = 64 * 1024;
let parsing: Promise<unknown> = Promise.resolve();

/** How one of the playlists is read. */
interface ReaderOptions extends HlsOptions {
  /** The reader of the pictures whose sound it reads. Default: it reads the pictures, or all. */
  readonly beside?: HlsReader;
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
  const openSound = () => {
    if (!reader.hasSeparateSound) return null;
    const sound = new HlsReader(ports, web, url, signal, { ...options, heard: () => {}, beside: reader });
    return inPackets(readAhead(sound.events()));
  };
  const events = withSound(inPackets(readAhead(reader.events())), openSound, ports.clock, signal);
  yield* paced(events, ports.clock, pace, signal);
}

class HlsReader {
  readonly #ports: Pick<SourcePorts, "clock" | "log">;
  readonly #web: SourceWeb;
  readonly #url: string;
  readonly #signal: AbortSignal;
  readonly #follower: HlsFollower;
  readonly #segments: SegmentReader;
  readonly #options: ReaderOptions;
  /** The playlist that was fetched already; null: it has been read. */
  #first: HlsOptions["first"] | null;
  #hasSent = false;
  /** Where the sound of the variant that is read has a playlist of its own; null: it has none. */
  #sound: { readonly url: string; readonly variables: HlsVariables } | null = null;

  constructor(
    ports: Pick<SourcePorts, "clock" | "log">,
    web: SourceWeb,
    url: string,
    signal: AbortSignal,
    options: ReaderOptions,
  ) {
    const { beside } = options;
    const converter = options.converter?.(beside !== undefined && !beside.isConverted) ?? null;
    const refuse = (reason: string) => this.#refuse(reason);
    this.#segments = new SegmentReader(web, converter, refuse, signal, beside?.isConverted);
    this.#follower = new HlsFollower(beside === undefined ? null : beside.#follower.joined);
    this.#options = options;
    this.#first = beside === undefined ? options.first ?? null : null;
    this.#ports = ports;
    this.#web = web;
    this.#url = url;
    this.#signal = signal;
  }

  /** Its segments are no MPEG TS. */
  get isConverted(): boolean {
    return this.#segments.isConverted;
  }

  /** The variant that is read has its sound in another playlist. */
  get hasSeparateSound(): boolean {
    return this.#sound !== null;
  }

  /** More is waiting than a reader at the edge has. */
  get isBehind(): boolean {
    return this.#follower.isBehind;
  }

  /** The segments in their order, to the end of the playlist. */
  async *events(): AsyncGenerator<AheadItem, void> {
    try {
      yield* this.#follow();
    } finally {
      this.#segments.close();
    }
  }

  async *#follow(): AsyncGenerator<AheadItem, void> {
    const { clock } = this.#ports;
    const { beside } = this.#options;
    let media: { url: string; variables: HlsVariables } | null = beside === undefined ? null : beside.#sound;
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
      variables = list.variables;
      const sound = variant.soundUrl === null ? null : { url: variant.soundUrl, variables };
      if (this.#options.beside === undefined) this.#sound = sound;
      else if (sound === null) throw this.#fault("bad_media", `${describeUrl(url)} no longer names a sound`);
      url = this.#options.beside === undefined ? variant.url : sound!.url;
    }
    throw this.#fault("bad_media", `${describeUrl(url)} leads from playlist to playlist`);
  }

  async #load(url: string, variables: HlsVariables): Promise<MediaList | MasterList> {
    const first = this.#first;
    this.#first = null;
    if (first) {
      return await this.#parsed(first.playlist, first.url, variables).catch((error) => {
        // What was read already says what is there: others may be tried at once.
        throw hasCode(error, "bad_media") ? new FatalSourceError("bad_media", reasonOf(error)) : error;
      });
    }
    const opened = await this.#web.open(url, { maxBytes: MAX_PLAYLIST_BYTES }, this.#signal);
    const read = await playlistText(this.#ports.clock, opened.body, this.#signal);
    return await this.#parsed(read, opened.url, variables);
  }

  /** As `parseHls`. */
  async #parsed(
    playlist: PlaylistText,
    url: string,
    variables: HlsVariables,
  ): Promise<MediaList | MasterList> {
    try {
      const { text } = playlist;
      if (text.length <= LONG_TEXT_CHARS) return parseHls(text, url, variables);
      const turn = async () => {
        await socketTurn();
        this.#signal.throwIfAborted();
      };
      const parsed = parsing.then(turn).then(() => parseLongHls(text, url, variables, turn));
      parsing = parsed.catch(() => {});
      return await parsed;
    } finally {
      playlist.release();
    }
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
        for await (const bytes of this.#segments.bytes(segment, sentBytes)) {
          sentBytes += bytes.length;
          this.#options.heard?.();
          yield* this.#data(this.#segments.packets(bytes));
        }
        yield* this.#data(this.#segments.end());
        return;
      } catch (error) {
        if (this.#signal.aborted || error instanceof FatalSourceError) throw error;
        if (hasCode(error, "unsupported_media")) this.#refuse(reasonOf(error));
        // Another try would bring the same.
        const isFinal = FINAL.some((code) => hasCode(error, code));
        if (isFinal || (left <= 0 && clock.monotonic() >= untilMs)) {
          this.#ports.log.log("warn", `segment ${segment.sequence} of the source failed`, { reason: reasonOf(error) });
          return yield lost;
        }
        await sleep(clock, RETRY_FIRST_MS, this.#signal);
      }
    }
  }

  *#data(bytes: Uint8Array): Generator<LiveInputEvent, void> {
    if (bytes.length === 0) return;
    this.#hasSent = true;
    yield { kind: "data", bytes };
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
