/** Several sources of one broadcast, simulated by sessions that the test controls. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { abortError, MillraceError } from "../../src/errors.ts";
import { channelStream, type Source, type StartedSource, startOne } from "../../src/playback/failover.ts";
import type { LiveSession } from "../../src/playback/live/live-session.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

const log = { log: () => {}, child: () => log };
const { signal } = new AbortController();

/** A source whose broadcast delivers what the test enqueues. */
class FakeSource implements Source {
  /** Set: it does not start. */
  fault: MillraceError | null = null;
  /** True: its start hangs until it is aborted. */
  hangs = false;
  starts = 0;
  plays = 0;
  opened = 0;
  left = 0;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;

  async start(signal: AbortSignal) {
    this.starts++;
    if (this.hangs) {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(abortError(signal))));
    }
    if (this.fault !== null) throw this.fault;
    const session = {
      kind: "live",
      openStream: () => {
        this.opened++;
        return new ReadableStream<Uint8Array>({
          start: (controller) => void (this.#controller = controller),
          cancel: () => void this.left++,
        });
      },
    };
    return session as unknown as LiveSession;
  }

  played(): void {
    this.plays++;
  }

  say(text: string): void {
    this.#controller!.enqueue(new TextEncoder().encode(text));
  }

  end(): void {
    this.#controller!.close();
  }

  breakOff(): void {
    this.#controller!.error(new MillraceError("timeout", "no data"));
  }
}

function channel(count: number) {
  const clock = new FakeClock();
  const sources = Array.from({ length: count }, () => new FakeSource());
  const parts = { clock, log, startTimeoutMs: 60_000 };
  const begin = async () => {
    const started = await startOne(parts, sources, signal) as StartedSource & { session: LiveSession };
    const reader = channelStream(parts, sources, started).getReader();
    const next = async () => {
      const { done, value } = await reader.read();
      return done ? null : new TextDecoder().decode(value);
    };
    return { reader, next };
  };
  return { clock, sources, parts, begin };
}

test("startOne() tries the next source when one fails or takes more than its share of the time", async () => {
  const { clock, sources, parts } = channel(3);
  sources[0]!.fault = new MillraceError("not_found", "gone");
  sources[1]!.hangs = true;
  const starting = startOne(parts, sources, signal);
  await clock.advanceAsync(14_999);
  assertEquals(sources.map(({ starts }) => starts), [1, 1, 0]);
  await clock.advanceAsync(1);
  assertEquals((await starting).index, 2);
  assertEquals(clock.pendingTimers, 0);
});

test("startOne() rejects with the first source's error when none starts; the last one has the whole time", async () => {
  const { clock, sources, parts } = channel(2);
  sources[0]!.fault = new MillraceError("unsupported_media", "no codec");
  sources[1]!.hangs = true;
  const refused = assertRejects(() => startOne(parts, sources, signal), MillraceError, "no codec");
  await clock.advanceAsync(59_999);
  assertEquals(clock.pendingTimers, 1);
  await clock.advanceAsync(1);
  await refused;
  await assertRejects(() => startOne(parts, [], signal), MillraceError, "nothing to play");
});

test("startOne() tries no other source when the caller gives up", async () => {
  const { sources, parts } = channel(2);
  sources[0]!.hangs = true;
  const giveUp = new AbortController();
  const refused = assertRejects(() => startOne(parts, sources, giveUp.signal), MillraceError, "left");
  giveUp.abort(new MillraceError("aborted", "left"));
  await refused;
  assertEquals(sources[1]!.starts, 0);
});

test("channelStream() continues with the next source when one breaks, ends or falls silent, and remembers which one played", async () => {
  const { clock, sources, begin } = channel(3);
  const { next } = await begin();
  let chunk = next();
  await clock.advanceAsync(0);
  sources[0]!.say("one");
  assertEquals(await chunk, "one");
  chunk = next();
  await clock.advanceAsync(0);
  sources[0]!.breakOff();
  await clock.advanceAsync(0);
  sources[1]!.say("two");
  assertEquals(await chunk, "two");
  chunk = next();
  await clock.advanceAsync(7999);
  assertEquals([sources[1]!.left, sources[2]!.starts], [0, 0]);
  await clock.advanceAsync(1);
  assertEquals([sources[1]!.left, sources[2]!.starts], [1, 1], "silent for 8 s");
  sources[2]!.say("three");
  assertEquals(await chunk, "three");
  chunk = next();
  await clock.advanceAsync(0);
  sources[2]!.end();
  await clock.advanceAsync(0);
  sources[0]!.say("one again");
  assertEquals(await chunk, "one again");
  assertEquals(sources.map(({ plays }) => plays), [2, 1, 1]);
});

test("channelStream() ends when its broadcasts have ended, and breaks when nothing plays any more", async () => {
  const { clock, sources, begin } = channel(2);
  const { next } = await begin();
  let chunk = next();
  for (const source of [sources[0]!, sources[1]!, sources[0]!]) {
    await clock.advanceAsync(0);
    source.end();
  }
  assertEquals(await chunk, null);
  assertEquals(sources.map(({ opened }) => opened), [2, 1], "each once more than the last that played");

  const silent = channel(2);
  const { next: nextOfSilent } = await silent.begin();
  chunk = nextOfSilent();
  const broken = assertRejects(() => chunk, MillraceError, "no data");
  await silent.clock.advanceAsync(8000 * 3);
  await broken;
  assertEquals(silent.clock.pendingTimers, 0);
});

test("channelStream() of a single source has the patience of its session, and leaves with its client", async () => {
  const { clock, sources, begin } = channel(1);
  const { reader, next } = await begin();
  const chunk = next();
  await clock.advanceAsync(50_000);
  sources[0]!.say("at last");
  assertEquals(await chunk, "at last");
  await reader.cancel();
  await clock.advanceAsync(0);
  assertEquals([sources[0]!.left, clock.pendingTimers], [1, 0]);
});

test("channelStream() ends when its client takes nothing for an hour, whatever other sources there are", async () => {
  const { clock, sources, begin } = channel(2);
  const { reader, next } = await begin();
  const first = next();
  await settle();
  sources[0]!.say("a");
  assertEquals(await first, "a");
  clock.advance(3_599_000);
  const second = next();
  sources[0]!.say("b");
  assertEquals(await second, "b");
  clock.advance(3_600_000);
  await assertRejects(() => reader.read(), MillraceError, "the client took nothing for 60 minutes");
  await settle();
  assertEquals([sources[0]!.left, sources[1]!.starts, clock.pendingTimers], [1, 0, 0]);
});
