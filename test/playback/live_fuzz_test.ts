/** Viewers parse, cut and splice whatever a hostile broadcaster signs: nothing in it may stop them. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { hasCode, MillraceError } from "../../src/errors.ts";
import type { LiveFeed } from "../../src/live/node/stream/feed.ts";
import type { LiveSource } from "../../src/live/swarm/live-source.ts";
import { LiveReader } from "../../src/playback/live/live-reader.ts";
import { LiveStream } from "../../src/playback/live/live-stream.ts";
import { simulatedHeader } from "../simulation/live-network.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { clip } from "../support/fixtures.ts";
import { seededBelow } from "../support/random.ts";

const ROUNDS = 60;
const PIECE_PACKETS = 100;

/** A source whose pieces the test makes. */
class ScriptedSource {
  readonly clock = new FakeClock();
  #seq = 0;
  #listener: () => void = () => {};
  readonly source: LiveSource = {
    metainfo: {} as LiveSource["metainfo"],
    ending: new AbortController().signal,
    supply: {
      joined: true,
      behindMs: 0,
      newestSeq: null,
      hasPieces: false,
      heldMs: 0,
      piecesBefore: () => [],
      openFeed: () => this.#feed as unknown as LiveFeed,
      closeFeed: () => {},
    },
    status: () => ({
      peers: 1,
      downloadBytesPerSecond: 0,
      uploadBytesPerSecond: 0,
      downloadedBytes: 0,
      uploadedBytes: 0,
      message: null,
    }),
    members: () => [],
    onPiece: (listener) => {
      this.#listener = listener;
      return () => {};
    },
  };
  #pieces: { data: Uint8Array; discontinuity: boolean }[] = [];
  readonly #feed = {
    ended: false,
    started: true,
    skippedPieces: 0,
    position: 0,
    take: () =>
      this.#pieces.splice(0).map(({ data, discontinuity }) => ({
        header: simulatedHeader({
          seq: this.#seq++,
          timestampMs: this.clock.now(),
          flags: 0,
          lengthBytes: data.length,
        }),
        blocks: [data],
        discontinuity,
      })),
  };

  give(data: Uint8Array, discontinuity: boolean): void {
    this.#pieces.push({ data, discontinuity });
    this.clock.advance(500);
    this.#listener();
  }
}

test("LiveStream and its readers take any packets, in bounds and without an error", async () => {
  const names = ["ts-188.ts", "ts-mpeg2.ts", "ts-two-programs.ts", "ts-audio-only.ts"];
  let made = 0;
  let read = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const random = seededBelow(round + 1);
    const scripted = new ScriptedSource();
    const stream = new LiveStream(scripted.source, scripted.clock, {
      limits: { windowMs: 10_000, maxBytes: 2_000_000 },
    });
    const reader = new LiveReader(stream);
    const bytes = reader.read(new AbortController().signal);
    const media = clip(names[round % names.length]!);
    for (let at = 0; at + PIECE_PACKETS * 188 <= media.length; at += PIECE_PACKETS * 188) {
      const piece = media.slice(at, at + PIECE_PACKETS * 188);
      const damage = random(4) === 0 ? 0 : random(200);
      for (let i = 0; i < damage; i++) {
        // Most fields that are parsed are at the beginning of packets.
        const place = random(PIECE_PACKETS) * 188 + (random(3) === 0 ? random(188) : random(24));
        piece[place] = random(4) === 0 ? 0xff : random(256);
      }
      scripted.give(piece, random(8) === 0);
      if (stream.startPoint() !== null && random(2) === 0) {
        const next = bytes.next();
        scripted.give(media.slice(0, PIECE_PACKETS * 188), false);
        const { value } = await next;
        assertEquals(value!.length % 188, 0);
        read++;
      }
      const position = reader.position;
      assert(position === null || position <= stream.window.end);
    }
    for (const segment of stream.segments) {
      let size = 0;
      try {
        for await (const part of stream.readSegment(segment, null, new AbortController().signal)) size += part.length;
      } catch (error) {
        // A segment may have left the window by its size.
        if (!(error instanceof MillraceError) || !hasCode(error, "not_found")) throw error;
        continue;
      }
      assertEquals(size % 188, 0);
      made++;
      assert(size > 0 && segment.durationMs > 0 && Number.isFinite(segment.durationMs), `${segment.durationMs}`);
    }
    assert(stream.window.usedBytes <= 2_000_000);
    stream.close();
  }
  assert(made > 30 && read > 100, `${made} segments, ${read} reads`);
});
