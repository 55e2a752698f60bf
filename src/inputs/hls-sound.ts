/**
 * Joins pictures and sound that come in playlists of their own into one transport stream, by the times in them: both playlists
 * have one clock (RFC 8216, 4.3.4.2.1).
 */
import { concatBytes } from "../bytes/hex.ts";
import { PACKET_BYTES } from "../bytes/ts/packet.ts";
import type { MapStream } from "../bytes/ts/psi.ts";
import { stepBetween } from "../bytes/ts/stamps.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import type { Clock } from "../ports.ts";
import { within } from "./input.ts";
import { PictureTables, type SoundUnit, SoundUnits, underPid } from "./hls-join.ts";

/**
 * The pictures wait this long for their sound, ms. It leaves time within the three seconds after which another address of a
 * channel is tried.
 */
const PATIENCE_MS = 2000;
/** Sound and pictures nearer than this are of one clock, 90 kHz: 2 s. */
const IN_STEP_90K = 180_000;
/** Sound that is older than the first picture by more has nothing to be heard with, 90 kHz: 0.2 s. */
const BEFORE_ALL_90K = 18_000;
/** A difference in cuts that lasts for this much of the pictures is none, 90 kHz: 10 s. */
const UNEQUAL_90K = 900_000;

/** `pictures` in whole packets, with the sound that `openSound` opens after the first of them came; null: they have theirs. */
export async function* withSound(
  pictures: AsyncGenerator<LiveInputEvent, void>,
  openSound: () => AsyncGenerator<LiveInputEvent, void> | null,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  let sound: Sound | null = null;
  try {
    const first = await pictures.next();
    if (first.done) return;
    const events = openSound();
    if (events === null) {
      yield first.value;
      return yield* pictures;
    }
    sound = new Sound(events, clock, signal);
    const tables = new PictureTables();
    for (let next: typeof first | IteratorReturnResult<void> = first; !next.done; next = await pictures.next()) {
      if (next.value.kind === "lost") {
        sound.cut();
        yield next.value;
        continue;
      }
      const bytes = await joined(next.value.bytes, tables, sound);
      if (bytes.length > 0) yield { kind: "data", bytes };
    }
  } finally {
    sound?.close();
    // Not awaited: it may wait for a server that hangs.
    void pictures.return().catch(() => {});
  }
}

/** Packets of the pictures with the sound that belongs between them. */
async function joined(bytes: Uint8Array, tables: PictureTables, sound: Sound): Promise<Uint8Array> {
  const out: Uint8Array[] = [];
  let from = 0;
  for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
    const step = tables.step(bytes.subarray(at, at + PACKET_BYTES));
    if (step === "pass") continue;
    out.push(bytes.subarray(from, at));
    from = typeof step === "object" ? at : at + PACKET_BYTES;
    if (step === "tables") out.push(tables.packets(await sound.stream()));
    else if (step !== "drop") {
      for (const packets of await sound.until(step.dts90k)) out.push(underPid(packets, tables.soundPid));
    }
  }
  return concatBytes([...out, bytes.subarray(from)]);
}

/** The sound, unit by unit as the pictures go on. */
class Sound {
  readonly #events: AsyncGenerator<LiveInputEvent, void>;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #units = new SoundUnits();
  #waiting: SoundUnit[] = [];
  #pending: Promise<IteratorResult<LiveInputEvent, void>> | null = null;
  #isSettled = false;
  /** True when the sound did not come in time: the pictures continue without it, and join it once it has arrived. */
  #isLate = false;
  #isOver = false;
  #hasBegun = false;
  /** Some of it was sent. */
  #hasSent = false;
  /** Cuts of the sound less those of the pictures, and the time of the pictures since when they differ. */
  #cuts = 0;
  #unequalSince90k: number | null = null;
  /** The cut before the unit that waits first was counted. */
  #isCounted = false;
  #stream: MapStream | null = null;

  constructor(events: AsyncGenerator<LiveInputEvent, void>, clock: Clock, signal: AbortSignal) {
    this.#events = events;
    this.#clock = clock;
    this.#signal = signal;
  }

  /** What comes next of the pictures does not continue what came before. */
  cut(): void {
    this.#cuts--;
    this.#unequalSince90k = null;
  }

  /** What the map of the sound says of it; null: nothing of it came in time. Throws as `until`. */
  async stream(): Promise<MapStream | null> {
    return (await this.#first())?.stream ?? this.#stream;
  }

  /** The packets of what belongs before the picture decoded at `dts90k`. Throws as its reader where nothing ever came. */
  async until(dts90k: number): Promise<Uint8Array[]> {
    const out: Uint8Array[] = [];
    for (;;) {
      const unit = await this.#first();
      if (unit === null) return out;
      const use = this.#useOf(unit, dts90k);
      if (use === "hold") return out;
      this.#waiting.shift();
      this.#isCounted = false;
      if (use === "drop") continue;
      this.#hasSent = true;
      out.push(unit.packets);
    }
  }

  /** The first unit that waits; null: none came in time. */
  async #first(): Promise<SoundUnit | null> {
    const untilMs = this.#clock.monotonic() + PATIENCE_MS;
    while (this.#waiting.length === 0) if (!await this.#pull(untilMs)) return null;
    this.#stream = this.#waiting[0]!.stream;
    return this.#waiting[0]!;
  }

  close(): void {
    this.#isOver = true;
    void this.#events.return().catch(() => {});
  }

  #useOf(unit: SoundUnit, dts90k: number): "send" | "hold" | "drop" {
    if (unit.isCut && !this.#isCounted) {
      this.#isCounted = true;
      this.#cuts++;
      this.#unequalSince90k = null;
    }
    const ahead90k = stepBetween(dts90k, unit.pts90k);
    if (Math.abs(ahead90k) <= IN_STEP_90K) {
      this.#cuts = 0;
      if (!this.#hasSent && ahead90k < -BEFORE_ALL_90K) return "drop";
      // Sound of the same time comes after the picture: viewers begin with that.
      return ahead90k >= 0 ? "hold" : "send";
    }
    if (this.#cuts !== 0) {
      this.#unequalSince90k ??= dts90k;
      if (Math.abs(stepBetween(this.#unequalSince90k, dts90k)) > UNEQUAL_90K) this.#cuts = 0;
    }
    // The pictures have passed a cut that this is before, or the sound is too late to be heard.
    if (this.#cuts < 0 || (this.#cuts === 0 && ahead90k < 0)) return "drop";
    return "hold";
  }

  /** Waits for more until `untilMs` (monotonic), which it appends; returns whether it has. */
  async #pull(untilMs: number): Promise<boolean> {
    if (this.#isOver) return false;
    if (this.#pending === null) {
      this.#isSettled = false;
      this.#pending = this.#events.next();
      const settle = () => void (this.#isSettled = true);
      this.#pending.then(settle, settle);
    }
    // A promise that is settled says so a turn later.
    if (this.#isLate) await Promise.resolve();
    if (this.#isLate && !this.#isSettled) return false;
    let next: IteratorResult<LiveInputEvent, void> | null;
    try {
      next = await within(this.#clock, Math.max(0, untilMs - this.#clock.monotonic()), this.#pending, this.#signal);
    } catch (error) {
      if (!this.#hasBegun || this.#signal.aborted) throw error;
      next = { done: true, value: undefined };
    }
    this.#isLate = next === null;
    if (next === null) return false;
    this.#pending = null;
    this.#isOver = next.done === true;
    if (next.done) return false;
    if (next.value.kind === "lost") this.#units.cut();
    else this.#waiting.push(...this.#units.push(next.value.bytes));
    this.#hasBegun ||= this.#waiting.length > 0;
    return true;
  }
}
