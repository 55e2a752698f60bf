/** Sends a stream through a broadcaster and a viewer on virtual time, and says what the viewer got. */
import { concatBytes } from "../../src/bytes/hex.ts";
import { hasPayload, PACKET_BYTES, payloadOf, pidOf, readPesHeader, startsUnit } from "../../src/bytes/ts/packet.ts";
import { inPackets } from "../../src/inputs/packets.ts";
import { probeBitrate } from "../../src/live/broadcast/bitrate-probe.ts";
import type { LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { LiveReader } from "../../src/playback/live/live-reader.ts";
import { LiveStream } from "../../src/playback/live/live-stream.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { bytesOf, type SentPacket } from "../support/ts-shapes.ts";
import { type Media, Studio } from "./live-support.ts";

/** Data comes in steps of this, ms. */
const STEP_MS = 100;
/** How long the pieces under way need after the source has ended, ms. */
const REST_MS = 1000;

/** Length of the first playlist that is given out, ms. */
const FIRST_PLAYLIST_MS = 3500;

/** What came of one stream, by its PID. */
export interface Units {
  readonly [pid: number]: number;
}

/** What a viewer got. */
export interface Viewed {
  /** Bitrate that was measured, bytes/s. */
  readonly bytesPerS: number;
  /** Reasons for which the source was lost. */
  readonly lost: readonly string[];
  /** When the first bytes of the MPEG TS came, and the longest time without any after that, ms. */
  readonly tsStartMs: number;
  readonly tsPauseMs: number;
  readonly tsUnits: Units;
  readonly ts: Uint8Array;
  /** When the playlist had its first segment, ms. */
  readonly hlsStartMs: number;
  readonly hlsUnits: Units;
  /** Length of all segments, and of the longest, ms. */
  readonly hlsMs: number;
  readonly hlsLongestMs: number;
  /** Discontinuities between segments. */
  readonly hlsCuts: number;
  readonly targetDurationS: number;
}

/** Broadcasts `packets`, and views them from the beginning on. */
export async function view(packets: readonly SentPacket[]): Promise<Viewed> {
  const clock = new FakeClock();
  const studio = await Studio.open({ clock, windowS: 600 });
  const stream = new LiveStream(studio, clock, { limits: { windowMs: 600_000, maxBytes: 2 ** 30 } });
  const reading = new AbortController();
  const parts: Uint8Array[] = [];
  let targetDurationS = 0;
  let [tsStartMs, tsPauseMs, lastMs, hlsStartMs] = [Infinity, 0, 0, Infinity];
  const read = (async () => {
    for await (const bytes of new LiveReader(stream).read(reading.signal)) {
      if (parts.length === 0) tsStartMs = clock.monotonic();
      else tsPauseMs = Math.max(tsPauseMs, clock.monotonic() - lastMs);
      lastMs = clock.monotonic();
      parts.push(bytes);
    }
  })();
  const lost: string[] = [];
  let bytesPerS = 0;
  const sender = new Sender(clock, packets);
  const sent = (async () => {
    const input = inPackets(sender.events());
    const probe = await probeBitrate(input, clock, new AbortController().signal);
    bytesPerS = probe.bytesPerS;
    const take = async (event: LiveInputEvent, atMs: number) => {
      if (event.kind === "data") return await studio.publisher.push(event.bytes, atMs);
      lost.push(event.reason);
      await studio.publisher.sourceLost();
    };
    for (const { event, atMs } of probe.events) await take(event, atMs);
    for await (const event of input) await take(event, clock.monotonic());
    await studio.publisher.end();
  })();
  const endMs = (packets.at(-1)?.atMs ?? 0) + REST_MS;
  while (clock.monotonic() < endMs) {
    await clock.advanceAsync(STEP_MS);
    // Signing takes real time, in which virtual time stands still.
    await sender.idle;
    studio.node.tick();
    await clock.advanceAsync(0);
    const heldMs = stream.segments.reduce((sum, { durationMs }) => sum + durationMs, 0);
    if (targetDurationS === 0 && heldMs > FIRST_PLAYLIST_MS) targetDurationS = stream.cuts.announceTargetS();
    if (stream.segments.length > 0) hlsStartMs = Math.min(hlsStartMs, clock.monotonic());
  }
  await sent;
  while (!stream.ended) {
    studio.node.tick();
    await clock.advanceAsync(STEP_MS);
  }
  await read;
  const { segments } = stream;
  const hls: Uint8Array[] = [];
  for (const segment of segments) {
    for await (const bytes of stream.readSegment(segment, null, reading.signal)) hls.push(bytes);
  }
  const lengths = segments.map(({ durationMs }) => durationMs);
  const ts = concatBytes(parts);
  const viewed = {
    bytesPerS,
    ts,
    lost,
    tsStartMs,
    tsPauseMs,
    tsUnits: unitsOf(ts),
    hlsStartMs,
    hlsUnits: unitsOf(concatBytes(hls)),
    hlsMs: lengths.reduce((sum, ms) => sum + ms, 0),
    hlsLongestMs: Math.max(0, ...lengths),
    hlsCuts: segments.filter(({ discontinuity }) => discontinuity).length,
    targetDurationS,
  };
  await stream.close();
  return viewed;
}

/** Units per PID. */
export function unitsOf(ts: Uint8Array): Units {
  const units: Record<number, number> = {};
  for (let at = 0; at < ts.length; at += PACKET_BYTES) {
    if (!startsUnit(ts, at) || !hasPayload(ts, at) || readPesHeader(payloadOf(ts, at)) === null) continue;
    units[pidOf(ts, at)] = (units[pidOf(ts, at)] ?? 0) + 1;
  }
  return units;
}

/** Packets as a studio's media. */
export class SentMedia implements Media {
  readonly #packets: readonly SentPacket[];
  #at = 0;
  #ms = 0;

  constructor(packets: readonly SentPacket[]) {
    this.#packets = packets;
  }

  next(ms: number): Uint8Array {
    this.#ms += ms;
    const from = this.#at;
    while (this.#at < this.#packets.length && this.#packets[this.#at]!.atMs < this.#ms) this.#at++;
    return bytesOf(this.#packets.slice(from, this.#at));
  }
}

/** Sends packets when they are due, in steps. */
class Sender {
  readonly #clock: FakeClock;
  readonly #packets: readonly SentPacket[];
  #rest = () => {};
  /** Resolves when all that was sent has been taken. */
  idle: Promise<void> = Promise.resolve();

  constructor(clock: FakeClock, packets: readonly SentPacket[]) {
    this.#clock = clock;
    this.#packets = packets;
  }

  async *events(): AsyncGenerator<LiveInputEvent, void> {
    let next = 0;
    for (let ms = STEP_MS; next < this.#packets.length; ms += STEP_MS) {
      this.#rest();
      await new Promise<void>((resolve) => void this.#clock.setTimeout(resolve, ms - this.#clock.monotonic()));
      this.idle = new Promise((resolve) => this.#rest = resolve);
      const from = next;
      while (next < this.#packets.length && this.#packets[next]!.atMs < ms) next++;
      const parts = this.#packets.slice(from, next).map(({ bytes }) => bytes);
      if (parts.length > 0) yield { kind: "data", bytes: concatBytes(parts) };
    }
    this.#rest();
  }
}
