/** What a viewer gets who knows a support node alone, when the source behind that breaks off, changes and begins again. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { LiveInput, LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { unitsOf } from "../playback/live-shapes.ts";
import { type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import {
  all,
  bytesOf,
  encoded,
  maps,
  mapSection,
  moved,
  type SentPacket,
  SOUND_PID,
  VIDEO_PID,
} from "../support/ts-shapes.ts";
import { until } from "../support/until.ts";
import { startSession } from "./support.ts";

/** Longest part, ms: the test goes on as soon as it has seen enough of one. */
const PART_MS = 60_000;
const STEP_MS = 40;
const MOVED_PID = 0x110;

/** Parts in real time, with a loss and a pause between them. */
class BrokenInput implements LiveInput {
  readonly #parts: readonly (readonly SentPacket[])[];
  #part = 0;
  #end = () => {};
  readonly #ended = new Promise<void>((resolve) => this.#end = resolve);

  constructor(...parts: (readonly SentPacket[])[]) {
    this.#parts = parts;
  }

  /** The part under way breaks off. */
  next(): void {
    this.#part++;
  }

  /** Nothing more comes: the end of the broadcast, if that still runs. */
  end(): void {
    this.#part = this.#parts.length;
    this.#end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LiveInputEvent> {
    for (const [i, packets] of this.#parts.entries()) {
      const startMs = performance.now();
      for (let at = 0; at < packets.length && this.#part === i;) {
        await new Promise((resolve) => setTimeout(resolve, STEP_MS));
        const from = at;
        while (at < packets.length && packets[at]!.atMs <= performance.now() - startMs) at++;
        if (at > from) yield { kind: "data", bytes: bytesOf(packets.slice(from, at)) };
      }
      yield { kind: "lost", reason: "the test broke it" };
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    await this.#ended;
  }
}

/** Counts units of a stream that comes in chunks. */
class Counter {
  readonly #units = new Map<number, number>();
  #rest: Uint8Array = new Uint8Array();

  push(chunk: Uint8Array): void {
    const bytes = concatBytes([this.#rest, chunk]);
    const end = bytes.length - bytes.length % PACKET_BYTES;
    this.#rest = bytes.slice(end);
    for (const [pid, count] of Object.entries(unitsOf(bytes.subarray(0, end)))) {
      this.#units.set(Number(pid), this.of(Number(pid)) + count);
    }
  }

  of(pid: number): number {
    return this.#units.get(pid) ?? 0;
  }
}

test("a viewer behind a support node plays on through a gap, other PIDs and a restart of the broadcaster", async () => {
  const directory = await temporaryDirectory();
  const engines: ServedEngine[] = [];
  const inputs: BrokenInput[] = [];
  const make = async () => {
    const served = await serveEngine({ startTimeoutMs: 30_000, pex: false });
    engines.push(served);
    return served;
  };
  try {
    const sender = await make();
    const clip = encoded("ts-188.ts", PART_MS);
    const elsewhere = all(
      moved(VIDEO_PID, MOVED_PID),
      maps([mapSection([[0x1b, MOVED_PID], [0x0f, SOUND_PID]], { pcrPid: MOVED_PID, version: 1 })]),
    )(clip);
    const go = (input: BrokenInput) => {
      inputs.push(input);
      return sender.engine.broadcast({ input, name: "channel", directory: directory.path, bytesPerS: 25_000 });
    };
    const first = new BrokenInput(clip, elsewhere);
    const before = await go(first);
    const relay = await make();
    const passing = await relay.engine.relay({ kind: "magnet", magnet: `${before.magnet}&x.pe=${sender.peer}` });
    await until("pieces at the support node", () => passing.status().downloadedBytes > 0);
    const viewer = await make();
    const magnet = `${before.magnet}&x.pe=${relay.peer}`;
    const started = await startSession(viewer, "getstream", { magnet });
    const playlist = await startSession(viewer, "manifest.m3u8", { magnet });
    const counter = new Counter();
    const { body } = await fetch(started.playback_url);
    const reader = body!.getReader();
    const reading = (async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) counter.push(next.value);
    })();
    reading.catch(() => {});
    await until("pictures of the first part", () => counter.of(VIDEO_PID) > 25);
    first.next();
    await until("pictures on the other PID", () => counter.of(MOVED_PID) > 25);
    await before.close();
    const seen = counter.of(VIDEO_PID);
    const after = await go(new BrokenInput(clip));
    assertEquals(after.metainfo.infohashHex, before.metainfo.infohashHex);
    await until("pictures after the restart", () => counter.of(VIDEO_PID) > seen + 25);
    await until("discontinuities in the playlist: between the parts, and at the restart", async () => {
      const text = await (await fetch(playlist.playback_url)).text();
      return (text.match(/#EXT-X-DISCONTINUITY\n/g)?.length ?? 0) >= 2;
    });
    assertEquals(viewer.engine.broadcasts.list().map((swarm) => swarm.status().peers), [1]);
    await reader.cancel();
  } finally {
    for (const input of inputs) input.end();
    await Promise.all(engines.map((engine) => engine.close()));
    await directory.remove();
  }
});
