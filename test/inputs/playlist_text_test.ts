/** The text of HLS playlists within its bounds. */
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { playlistText } from "../../src/inputs/playlist-text.ts";
import { deferred } from "../../src/bytes/deferred.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

const ASCII = new TextEncoder();
const NEVER = new AbortController().signal;

/** A server that sends eight chunks of 16 KiB as fast as they are read, and the end when it is told to. */
class Sender {
  readonly #end = deferred<void>();
  sent = 0;

  async *body(): AsyncGenerator<Uint8Array, void> {
    while (this.sent < 8) {
      this.sent++;
      yield ASCII.encode("#".repeat(16 * 1024));
    }
    await this.#end.promise;
  }

  end(): void {
    this.#end.resolve();
  }
}

const LENGTH = 8 * 16 * 1024;

/** Waits until so much of each was read. */
const read = (senders: readonly Sender[], sent: readonly number[]) =>
  until(`${sent} chunks are read`, () => senders.every((one, at) => one.sent === sent[at]));

async function* short(): AsyncGenerator<Uint8Array, void> {
  yield ASCII.encode("#EXTM3U\nshort.ts\n");
}

test("playlistText() reads at most three long playlists at once, in the order in which they came", async () => {
  const clock = new FakeClock();
  const senders = Array.from({ length: 5 }, () => new Sender());
  const leaving = new AbortController();
  const texts = senders.map((sender, at) => playlistText(clock, sender.body(), at === 3 ? leaving.signal : NEVER));
  const left = assertRejects(() => texts[3]!);
  // The others stop where they are long, and nothing more is asked of their servers.
  await read(senders, [8, 8, 8, 4, 4]);
  assertEquals((await playlistText(clock, short(), NEVER)).text, "#EXTM3U\nshort.ts\n");
  assertEquals(senders.map(({ sent }) => sent), [8, 8, 8, 4, 4]);
  leaving.abort();
  await left;
  senders[0]!.end();
  const first = await texts[0]!;
  assertEquals(first.text.length, LENGTH);
  // It is in memory until it was parsed.
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(senders.map(({ sent }) => sent), [8, 8, 8, 4, 4]);
  first.release();
  assertEquals(first.text, "");
  first.release();
  await read(senders, [8, 8, 8, 4, 8]);
  for (const at of [1, 2, 4]) senders[at]!.end();
  for (const at of [1, 2, 4]) (await texts[at]!).release();
});

test("playlistText() leaves a long playlist that takes more than ten seconds, and gives its place on", async () => {
  const clock = new FakeClock();
  const senders = Array.from({ length: 4 }, () => new Sender());
  const texts = senders.map((sender) => playlistText(clock, sender.body(), NEVER));
  const slow = [0, 1, 2].map((at) => assertRejects(() => texts[at]!, MillraceError, "too slowly"));
  await read(senders, [8, 8, 8, 4]);
  await clock.advance(10_001);
  await Promise.all(slow);
  await read(senders, [8, 8, 8, 8]);
  senders[3]!.end();
  const last = await texts[3]!;
  assertEquals(last.text.length, LENGTH);
  last.release();
});

test("playlistText() stops at more segments or bytes than are read of any, packed ones as well", async () => {
  const clock = new FakeClock();
  let chunks = 0;
  const endless = async function* (line: string) {
    for (;; chunks++) yield ASCII.encode(line.repeat(1000));
  };
  await assertRejects(() => playlistText(clock, endless("#EXTINF:1,\na.ts\n"), NEVER), MillraceError, "many segments");
  assertEquals(chunks, 45);
  chunks = 0;
  await assertRejects(() => playlistText(clock, endless("#".repeat(64)), NEVER), MillraceError, "too large");
  assertEquals(chunks, 65);
  const packed = gzipSync("#EXTM3U\n" + "#EXTINF:1,\na.ts\n".repeat(200_000));
  const whole = async function* () {
    yield new Uint8Array(packed);
  };
  await assertRejects(() => playlistText(clock, whole(), NEVER), MillraceError, "many segments");
});
