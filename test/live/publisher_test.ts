import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import {
  type BroadcastState,
  readBroadcastState,
  RESERVED_PIECES,
  SequenceAllocator,
  writeBroadcastState,
} from "../../src/live/broadcast/broadcast-state.ts";
import { BLOCK_BYTES } from "../../src/wire/types.ts";
import { FLAG_DISCONTINUITY, FLAG_END, hashOfBlock, MAX_SEQUENCE } from "../../src/live/header.ts";
import { RateWatch } from "../../src/live/broadcast/rate-watch.ts";
import { Publisher, type SignedPiece } from "../../src/live/broadcast/publisher.ts";
import { createLiveKey, CryptoVerifier, HeaderSigner } from "../../src/live/signer.ts";
import type { FilePort } from "../../src/ports.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { sha256 } from "../../platform/shared/digests.ts";
import { ed25519 } from "../../platform/shared/signatures.ts";

const INFOHASH = new Uint8Array(20).fill(5);
const TS = new Uint8Array(readFileSync(new URL("../fixtures/ts-188.ts", import.meta.url)));
const PATH = "/state/live";

async function newState(): Promise<BroadcastState> {
  return { ...(await createLiveKey()), epoch: 4, nextSeq: 0, timestampMs: 0 };
}

test("Publisher makes signed pieces that verify and hold the source's bytes", async () => {
  const state = await newState();
  const verifier = new CryptoVerifier(state.publicKey, INFOHASH, { sha256, ed25519 });
  const pieces: SignedPiece[] = [];
  const clock = new FakeClock();
  const publisher = new Publisher({
    clock,
    signer: await HeaderSigner.create(state.privateKey, INFOHASH),
    sha256,
    sequence: new SequenceAllocator(state, () => Promise.resolve()),
    pieceLengthBytes: 65536,
    continues: true,
    publish: (piece) => pieces.push(piece),
  });
  for (let at = 0; at < TS.length; at += 20_000) {
    await publisher.push(TS.subarray(at, at + 20_000));
    clock.advance(500);
  }
  assert(Math.abs(publisher.bytesPerS! - 40_000) < 8000);
  await publisher.end();
  assertEquals(pieces.map(({ header }) => header.seq), pieces.map((_, i) => i));
  for (const { header, data } of pieces) {
    assert(await new Promise<boolean>((done) => verifier.header(header, done)));
    for (let block = 0; block * BLOCK_BYTES < data.length; block++) {
      const bytes = data.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      assert(await new Promise<boolean>((done) => verifier.block(bytes, hashOfBlock(header, block), done)));
    }
  }
  assert(concatBytes(pieces.map(({ data }) => data)).length >= TS.length);
  assertEquals(pieces.at(-1)!.header.flags & FLAG_END, FLAG_END);
});

test("Publisher keeps capture times growing when the wall clock is set back", async () => {
  const state = await newState();
  const times: number[] = [];
  let nowMs = 5000;
  const clock = { now: () => nowMs, monotonic: () => 0, setTimeout: () => ({ cancel() {} }) };
  const publisher = new Publisher({
    clock,
    signer: await HeaderSigner.create(state.privateKey, INFOHASH),
    sha256,
    sequence: new SequenceAllocator(state, () => Promise.resolve()),
    pieceLengthBytes: 16384,
    continues: true,
    publish: ({ header }) => times.push(header.timestampMs),
  });
  for (let at = 0; at < 200_000; at += 20_000, nowMs -= 300) await publisher.push(TS.subarray(at, at + 20_000));
  assert(times.length > 5);
  assert(times.every((time, i) => i === 0 || time > times[i - 1]!));
});

test("Publisher marks what follows a lost source as a discontinuity and goes on", async () => {
  const state = await newState();
  const pieces: SignedPiece[] = [];
  const publisher = new Publisher({
    clock: new FakeClock(),
    signer: await HeaderSigner.create(state.privateKey, INFOHASH),
    sha256,
    sequence: new SequenceAllocator(state, () => Promise.resolve()),
    pieceLengthBytes: 32768,
    continues: true,
    publish: (piece) => pieces.push(piece),
  });
  await publisher.push(TS.subarray(0, 188 * 100));
  await publisher.sourceLost();
  await publisher.push(TS);
  assertEquals(pieces.map(({ header }) => header.flags & FLAG_DISCONTINUITY).slice(0, 3), [0, FLAG_DISCONTINUITY, 0]);
});

test("writeBroadcastState() keeps key and position, and readBroadcastState() gives them back", async () => {
  const files = new MemoryFiles(new FakeClock());
  await files.makeDirectory("/state");
  assertEquals(await readBroadcastState(files, PATH), null);
  const state = { ...(await newState()), nextSeq: 99 };
  await writeBroadcastState(files, PATH, state);
  assertEquals(await readBroadcastState(files, PATH), state);
});

test("writeBroadcastState() asks for mode 600: the file holds a private key", async () => {
  const modes: unknown[] = [];
  const files = new MemoryFiles(new FakeClock());
  const port: FilePort = Object.assign(Object.create(files) as MemoryFiles, {
    writeFile: (_path: string, _data: Uint8Array, options?: { mode?: number }) => {
      modes.push(options?.mode);
      return Promise.resolve();
    },
  });
  await writeBroadcastState(port, PATH, await newState());
  assertEquals(modes, [0o600]);
});

test("readBroadcastState() rejects with corrupt when the file is damaged", async () => {
  const files = new MemoryFiles(new FakeClock());
  await files.makeDirectory("/state");
  for (const text of ["", "xx", "de", "d1:vi1ee", "d5:epochi1e3:key1:a4:nexti-1e6:public1:a1:vi1ee", "i5e"]) {
    await files.writeFile(PATH, new TextEncoder().encode(text));
    assertEquals((await assertRejects(() => readBroadcastState(files, PATH), MillraceError)).code, "corrupt", text);
  }
});

test("SequenceAllocator never gives a number twice, whenever it is killed", async () => {
  let saved = await newState();
  const used = new Set<string>();
  for (let life = 0; life < 20; life++) {
    const allocator = new SequenceAllocator(saved, (state) => Promise.resolve(void (saved = state)));
    for (let i = 0; i < life * 3; i++) {
      const { epoch, seq } = await allocator.take(1);
      assert(!used.has(`${epoch}:${seq}`));
      used.add(`${epoch}:${seq}`);
    }
    if (life % 2 === 0) {
      await allocator.close();
      assertEquals(saved.nextSeq, Math.max(...[...used].map((text) => Number(text.split(":")[1])), -1) + 1);
    } else assert(saved.nextSeq <= used.size + 20 * RESERVED_PIECES);
  }
});

test("SequenceAllocator begins a new epoch after the last number", async () => {
  let saved: BroadcastState = { ...(await newState()), nextSeq: MAX_SEQUENCE };
  const allocator = new SequenceAllocator(saved, (state) => Promise.resolve(void (saved = state)));
  assertEquals(await allocator.take(1), { epoch: 4, seq: MAX_SEQUENCE });
  assertEquals(await allocator.take(1), { epoch: 5, seq: 0 });
  assertEquals(saved.epoch, 5);
});

test("SequenceAllocator gives no number that it could not save", async () => {
  let broken = true;
  const allocator = new SequenceAllocator(await newState(), () => {
    return broken ? Promise.reject(new MillraceError("disk_full", "full")) : Promise.resolve();
  });
  await assertRejects(() => allocator.take(1), MillraceError);
  broken = false;
  assertEquals((await allocator.take(1)).seq, 0);
});

test("Publisher goes on above all it has stamped when it is killed and its wall clock is an hour earlier then", async () => {
  let saved = await newState();
  const times: number[] = [];
  const run = async (wallMs: number) => {
    const clock = new FakeClock(wallMs);
    const publisher = new Publisher({
      clock,
      signer: await HeaderSigner.create(saved.privateKey, INFOHASH),
      sha256,
      sequence: new SequenceAllocator(saved, (state) => Promise.resolve(void (saved = state))),
      pieceLengthBytes: 16384,
      continues: false,
      publish: ({ header }) => times.push(header.timestampMs),
    });
    for (let at = 0; at < TS.length; at += 5000, clock.advance(700)) await publisher.push(TS.subarray(at, at + 5000));
    return clock.now();
  };
  const wallMs = 1_800_000_000_000;
  await run(wallMs);
  const before = times.length;
  await run(wallMs - 3_600_000);
  assert(times.length > before + 5);
  assert(times.every((time, i) => i === 0 || time > times[i - 1]!));
  const spanMs = times.at(-1)! - times[before]!;
  assert(spanMs > 690 * (times.length - before - 2), `pieces seem to come ${spanMs} ms apart in all`);
  // A clock that is right again is believed.
  const end = times.length;
  await run(wallMs + 86_400_000);
  assertEquals(times[end], wallMs + 86_400_000);
});

test("RateWatch warns once when the stream is a quarter off what was announced for ten seconds, and tells that until they agree", () => {
  const warnings: string[] = [];
  const watch = new RateWatch(100_000, (message) => warnings.push(message));
  let nowMs = 0;
  const run = (rate: number | null, ms: number) => {
    for (const end = nowMs + ms; nowMs < end; nowMs += 1000) watch.look(rate, nowMs);
  };
  for (const rate of [null, 100_000, 124_000, 76_000]) run(rate, 20_000);
  for (const rate of [300_000, 100_000, 20_000, 100_000]) run(rate, 9000);
  assertEquals([watch.trouble, warnings], [null, []]);
  for (const rate of [126_000, 50_000, 80_000]) run(rate, 20_000);
  assertEquals(warnings.length, 1);
  assert(/1008 kbit\/s, but 800 kbit\/s are announced/.test(warnings[0]!), warnings[0]);
  assert(watch.trouble !== null);
  run(90_000, 1000);
  assertEquals(watch.trouble, null);
});
