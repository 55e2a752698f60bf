/**
 * A channel that comes by HTTP, as playback sees it: one upstream for all its viewers. When its address fails, ends or
 * falls silent, the next one of the channel continues.
 */
import { sleep } from "../../bytes/deadline.ts";
import { readPlayerAddress } from "../../content/analysis/player-address.ts";
import { MillraceError } from "../../errors.ts";
import { reasonOf } from "../../inputs/input.ts";
import { RETRY_FIRST_MS, RETRY_MOST_MS } from "../../inputs/retry.ts";
import { describeUrl } from "../../inputs/spec.ts";
import type { ChannelFacts, LiveSource, LiveStatus } from "../../live/swarm/live-source.ts";
import type { MemberFigures } from "../../live/swarm/member-figures.ts";
import type { Clock, Logger } from "../../ports.ts";
import { RateMeter } from "../../swarm/rate-meter.ts";
import type { AccountConnections } from "./account-connections.ts";
import { addressEvents, type AddressPorts } from "./address-events.ts";
import { ChannelFeed } from "./channel-feed.ts";
import type { ChannelAccount } from "./channel-selector.ts";

/** An address from which nothing comes for this long is left, ms: about as long as players have in store. */
const SILENCE_MS = 3000;
/** The same for a channel that has no other, ms: a connection that comes back costs more than waiting. */
const ONLY_SILENCE_MS = 10_000;
/** An address that played for this long was a good one, ms: it may be opened again at once. */
const GOOD_AFTER_MS = 10_000;
/**
 * The last address that is left waits this long for a connection of its account, ms: somebody who changes from channel to
 * channel has left the one before a moment ago.
 */
const CONNECTION_WAIT_MS = 7000;
/** The window hears of what came at most this often, ms; it looks by itself ten times a second. */
const TELL_MS = 50;
/**
 * The window hears at once of so many that an address sends first: a viewer waits for the whole first picture, which comes in
 * several of them.
 */
const TOLD_AT_ONCE = 64;

/** What a channel is made of. */
export interface ChannelParts {
  readonly ports: AddressPorts & { readonly clock: Clock; readonly log: Logger };
  readonly infohashHex: string;
  readonly name: string;
  /** At least one, in their order. */
  readonly addresses: readonly {
    readonly address: string;
    readonly allowPrivate: boolean;
    readonly item: number | null;
    readonly account: ChannelAccount | null;
  }[];
  readonly accounts: Pick<AccountConnections, "take">;
  /** The use that its connection has at present: one of `RANKS`. It changes as viewers and recordings come and go. */
  readonly rank: () => number;
  /** The same for channels of the same addresses, in whatever order. */
  readonly set: string;
}

/** Reads one channel until `close`. */
export class ChannelSource implements LiveSource {
  readonly metainfo: LiveSource["metainfo"];
  readonly supply = new ChannelFeed();
  readonly ending: AbortSignal;
  readonly #parts: ChannelParts;
  readonly #ending = new AbortController();
  readonly #listeners = new Set<() => void>();
  readonly #meter: RateMeter;
  #index = 0;
  #isPlaying = false;
  #changes = 0;
  #reason: string | null = null;
  #title: string | null = null;
  #toldMs = -Infinity;
  /** How many more the window hears of at once. */
  #atOnce = 0;

  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.metainfo = { infohashHex: parts.infohashHex, name: parts.name };
    this.ending = this.#ending.signal;
    this.#meter = new RateMeter(parts.ports.clock.monotonic());
    this.#run().catch((error) => this.#ending.abort(error));
  }

  get set(): string {
    return this.#parts.set;
  }

  /** The address that it began with. */
  get first(): string {
    return this.#parts.addresses[0]!.address;
  }

  /** The present address. */
  get address(): string {
    return this.#parts.addresses[this.#index]!.address;
  }

  get channel(): ChannelFacts {
    const { addresses } = this.#parts;
    const { address, item } = addresses[this.#index]!;
    return {
      index: this.#index,
      count: addresses.length,
      item,
      address: describeUrl(readPlayerAddress(address).url),
      isPlaying: this.#isPlaying,
      changes: this.#changes,
      reason: this.#reason,
      title: this.#title,
    };
  }

  status(): LiveStatus {
    return {
      peers: this.#isPlaying ? 1 : 0,
      downloadBytesPerSecond: this.#meter.rate(this.#parts.ports.clock.monotonic()),
      uploadBytesPerSecond: 0,
      downloadedBytes: this.#meter.totalBytes,
      uploadedBytes: 0,
      message: null,
    };
  }

  members(): readonly MemberFigures[] {
    return [];
  }

  onPiece(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Leaves the upstream. */
  close(): void {
    this.#ending.abort(new MillraceError("closed", "nobody watches the channel any more"));
  }

  /** Reads one address after the other. Throws when none of them ever sent anything. */
  async #run(): Promise<void> {
    const { ports: { clock, log }, addresses } = this.#parts;
    /** Addresses in a row that did not play for long, and those before the first byte. */
    let short = 0;
    let pauseMs = RETRY_FIRST_MS;
    let first: unknown = null;
    while (!this.ending.aborted) {
      const sinceMs = clock.monotonic();
      let trouble: unknown = new MillraceError("closed", "the server ended the stream");
      try {
        const isLast = short % addresses.length === addresses.length - 1;
        if (await this.#read(isLast ? CONNECTION_WAIT_MS : 0)) return this.#over();
      } catch (error) {
        trouble = error;
      }
      if (this.ending.aborted) return;
      const hasPlayed = this.#isPlaying;
      this.#isPlaying = false;
      first ??= trouble;
      short = hasPlayed && clock.monotonic() - sinceMs >= GOOD_AFTER_MS ? 0 : short + 1;
      if (!this.supply.started && short >= addresses.length) throw first;
      this.#reason = reasonOf(trouble);
      log.log("info", "an address of a channel failed", { address: this.channel.address, reason: this.#reason });
      this.#index = (this.#index + 1) % addresses.length;
      this.#changes++;
      this.supply.cut();
      if (short < addresses.length) {
        pauseMs = RETRY_FIRST_MS;
        continue;
      }
      await sleep(clock, pauseMs, this.ending).catch(() => {});
      pauseMs = Math.min(2 * pauseMs, RETRY_MOST_MS);
    }
  }

  /** Reads the present address, which may wait so long for a connection; returns whether it has ended for good. */
  async #read(waitMs: number): Promise<boolean> {
    const { ports, addresses, accounts, rank } = this.#parts;
    const { address, allowPrivate, account } = addresses[this.#index]!;
    const silenceMs = addresses.length === 1 ? ONLY_SILENCE_MS : SILENCE_MS;
    this.#title = null;
    this.#atOnce = TOLD_AT_ONCE;
    const titled = (title: string) => void (this.#title = title);
    const needed = new AbortController();
    const user = { rank, giveUp: (reason: MillraceError) => needed.abort(reason) };
    const giveBack = await accounts.take(account, user, waitMs, this.ending);
    try {
      const signal = AbortSignal.any([this.ending, needed.signal]);
      const events = addressEvents(ports, address, { allowPrivate, silenceMs, titled }, signal);
      for (;;) {
        const { done, value } = await events.next();
        if (done) return value;
        if (value.kind === "data") this.#deliver(value.bytes);
        else {
          this.supply.cut();
          // Players begin in the newest run: of a recording they would miss what is before its first discontinuity.
          this.#atOnce = 0;
        }
      }
    } finally {
      giveBack();
    }
  }

  #deliver(packets: Uint8Array): void {
    const { clock } = this.#parts.ports;
    const nowMs = clock.monotonic();
    this.#isPlaying = true;
    this.#meter.add(packets.length, nowMs);
    this.supply.push(packets, clock.now());
    if (this.#atOnce <= 0 && nowMs - this.#toldMs < TELL_MS) return;
    this.#atOnce--;
    this.#toldMs = nowMs;
    this.#tell();
  }

  #over(): void {
    this.supply.end();
    this.#tell();
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
