/** Program maps rewritten in place. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../../support/memory-source.ts";
import type { ByteSource } from "../../../src/bytes/source.ts";
import { readTs } from "../../../src/media/ts-file/read-range.ts";
import { crc32Mpeg } from "../../../src/bytes/ts/crc.ts";
import { payloadOf, pidOf, startsUnit } from "../../../src/bytes/ts/packet.ts";
import { readPmt, SectionAssembler } from "../../../src/bytes/ts/psi.ts";
import { changesMap, editMap, editMapSection, type MapEdit } from "../../../src/media/ts-file/rewrite/map-edit.ts";
import { editMapPackets, openMapEnds } from "../../../src/media/ts-file/rewrite/map-packets.ts";
import { rewrittenFormat, rewrittenSource } from "../../../src/media/ts-file/rewrite/rewritten.ts";
import { languagesOf } from "../../../src/media/model/language.ts";
import { NEVER, seeded } from "../support/files.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";

const PID = 0x40;

/** A stream of the map: PID, stream_type, language, further descriptors. */
type Row = readonly [pid: number, type: number, language: string | null, more?: readonly number[]];

function section(rows: readonly Row[], program = 1): Uint8Array {
  const body = [2, 0, 0, program >> 8, program & 255, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0];
  for (const [pid, type, language, more = []] of rows) {
    const descriptors = [...more];
    if (language !== null) descriptors.push(0x0a, 4, ...new TextEncoder().encode(language), 0);
    body.push(type, 0xe0 | (pid >> 8), pid & 255, 0xf0 | (descriptors.length >> 8), descriptors.length & 255);
    body.push(...descriptors);
  }
  const length = body.length + 4 - 3;
  body[1] = 0xb0 | (length >> 8);
  body[2] = length & 255;
  const out = new Uint8Array([...body, 0, 0, 0, 0]);
  new DataView(out.buffer).setUint32(body.length, crc32Mpeg(out.subarray(0, body.length)));
  return out;
}

/** Packets of one section, after `pointer` bytes that end another; between them packets of PID 0x50. */
function packets(bytes: Uint8Array, pointer = 0): Uint8Array {
  const payload = new Uint8Array([pointer, ...new Array(pointer).fill(0xee), ...bytes]);
  const out: Uint8Array[] = [];
  for (let at = 0; at < payload.length; at += 184) {
    const packet = new Uint8Array(188).fill(0xff);
    packet.set([0x47, at === 0 ? 0x40 : 0, PID, 0x10 | (out.length & 15)]);
    packet.set(payload.subarray(at, at + 184), 4);
    const other = new Uint8Array(188).fill(7);
    other.set([0x47, 0, 0x50, 0x10]);
    out.push(packet, other);
  }
  return concatBytes(out);
}

/** Lends memory that is overwritten once its last holder has released it. */
class LendingSource implements ByteSource {
  readonly sizeBytes: number;
  readonly #file: Uint8Array;
  readonly #holders = new Map<ArrayBufferLike, number>();

  constructor(file: Uint8Array) {
    this.sizeBytes = file.length;
    this.#file = file;
  }

  get held(): number {
    return this.#holders.size;
  }

  read(offset: number, length: number): Promise<Uint8Array> {
    const bytes = this.#file.slice(offset, offset + length);
    this.#holders.set(bytes.buffer, 1);
    return Promise.resolve(bytes);
  }

  hold({ buffer }: Uint8Array): void {
    this.#holders.set(buffer, this.#holders.get(buffer)! + 1);
  }

  release({ buffer }: Uint8Array): void {
    const left = this.#holders.get(buffer)! - 1;
    if (left > 0) return void this.#holders.set(buffer, left);
    this.#holders.delete(buffer);
    new Uint8Array(buffer).fill(0xee);
  }
}

function mapsIn(ts: Uint8Array) {
  const assembler = new SectionAssembler();
  const found: Uint8Array[] = [];
  for (let at = 0; at < ts.length; at += 188) {
    if (pidOf(ts, at) === PID) found.push(...assembler.push(payloadOf(ts, at), startsUnit(ts, at)));
  }
  return found.map((one) => readPmt(one)!);
}

const edit = (preferred: string, aac: number[] = []): MapEdit => ({
  programNumber: 1,
  preferred: languagesOf(preferred),
  becomesAac: ({ id }) => aac.includes(id),
});

const ROWS: readonly Row[] = [
  [0x100, 0x1b, null],
  [0x101, 0x03, "eng", [0x52, 1, 9]],
  [0x102, 0x06, null, [0x59, 8, 100, 101, 117, 16, 0, 1, 0, 1]],
  [0x103, 0x81, "fre", [0x05, 4, 0x41, 0x43, 0x2d, 0x33]],
  [0x104, 0x0f, "deu"],
];

test("editMapSection() puts the preferred audio first and leaves the length and all else", () => {
  const cases: readonly (readonly [string, number[]])[] = [
    ["", [0x100, 0x101, 0x102, 0x103, 0x104]],
    ["de", [0x100, 0x104, 0x102, 0x101, 0x103]],
    ["fra, ger", [0x100, 0x103, 0x102, 0x104, 0x101]],
    ["jpn", [0x100, 0x101, 0x102, 0x103, 0x104]],
  ];
  const before = section(ROWS);
  for (const [preferred, pids] of cases) {
    const after = editMapSection(before, edit(preferred))!;
    assertEquals(after.length, before.length);
    assertEquals(crc32Mpeg(after), 0);
    const map = readPmt(after)!;
    assertEquals(map.streams.map(({ pid }) => pid), pids, preferred);
    const own = readPmt(before)!;
    for (const stream of map.streams) assertEquals(stream, own.streams.find(({ pid }) => pid === stream.pid));
    assertEquals(changesMap(own, edit(preferred)), pids.join() !== own.streams.map(({ pid }) => pid).join());
  }
});

test("editMapSection() calls sound AAC without a descriptor that says otherwise, keeping the language", () => {
  const before = readPmt(section(ROWS))!;
  const after = readPmt(editMapSection(section(ROWS), edit("", [0x101, 0x103]))!)!;
  assertEquals(after.streams.map(({ streamType }) => streamType), [0x1b, 0x0f, 0x06, 0x0f, 0x0f]);
  assertEquals([...after.streams[3]!.descriptors], [0x42, 4, 255, 255, 255, 255, 0x0a, 4, 102, 114, 101, 0]);
  assertEquals(after.streams[1]!.descriptors, before.streams[1]!.descriptors);
  assertEquals(editMap(before, edit("", [0x101, 0x103])), after);
});

test("editMapSection() leaves other programs, other tables and damage alone", () => {
  assertEquals(editMapSection(section(ROWS, 2), edit("de")), null);
  const damaged = section(ROWS);
  damaged[20] = damaged[20]! ^ 1;
  assertEquals(editMapSection(damaged, edit("de")), null);
  assertEquals(editMapSection(new Uint8Array(10), edit("de")), null);
});

const MANY: readonly Row[] = [
  [0x100, 0x1b, null],
  ...Array.from({ length: 40 }, (_, i): Row => [0x200 + i, 0x03, i === 39 ? "deu" : "eng"]),
];

test("editMapPackets() edits sections in one packet, across several, after a pointer field, and two in one packet", () => {
  for (const [rows, pointer] of [[ROWS, 0], [ROWS, 60], [MANY, 0], [MANY, 100]] as const) {
    const before = packets(section(rows), pointer);
    const after = before.slice();
    editMapPackets(after, PID, edit("de"));
    const wanted = editMap(mapsIn(before)[0]!, edit("de"));
    assertEquals(mapsIn(after), [wanted]);
    assertEquals(mapsIn(after)[0]!.streams[1]!.pid, rows === ROWS ? 0x104 : 0x227);
    for (let at = 0; at < after.length; at += 188) {
      assertEquals(after.subarray(at, at + 4), before.subarray(at, at + 4));
      if (pidOf(after, at) !== PID) assertEquals(after.subarray(at, at + 188), before.subarray(at, at + 188));
    }
  }
  const two = packets(concatBytes([section(ROWS.slice(0, 2), 2), section(ROWS)]));
  editMapPackets(two, PID, edit("de"));
  assertEquals(mapsIn(two).map(({ programNumber, streams }) => [programNumber, streams[1]!.pid]), [
    [2, 0x101],
    [1, 0x104],
  ]);
});

test("openMapEnds() says where a stretch holds a part of a section", () => {
  const all = packets(section(MANY));
  const cut = (from: number, to: number) => openMapEnds(all.subarray(from * 188, to * 188), PID);
  assertEquals(cut(0, all.length / 188), { before: false, after: false });
  assertEquals(cut(0, 1), { before: false, after: true });
  assertEquals(cut(2, all.length / 188), { before: true, after: true });
  assertEquals(cut(1, 2), { before: false, after: false });
});

test("rewrittenSource() returns the same bytes whatever is read first, also in the middle of a map", async () => {
  const file = concatBytes([
    packets(section(ROWS)),
    packets(section(MANY)),
    packets(section(ROWS, 2)),
    packets(section(MANY)),
  ]);
  const rewriting = {
    format: { strideBytes: 188, firstAt: 0, packetCount: file.length / 188 },
    mapPid: PID,
    edit: edit("de"),
    overlay: null,
  };
  const whole = await rewrittenSource(rewriting, new MemorySource(file)).read(0, file.length, { signal: NEVER });
  assertEquals(mapsIn(whole).map(({ streams }) => streams[1]!.pid), [0x104, 0x227, 0x101, 0x227]);
  assertEquals(rewrittenFormat(rewriting).packetCount * 188, file.length);
  const random = seeded(9);
  for (let i = 0; i < 100; i++) {
    const start = Math.floor(random() * file.length);
    const length = Math.floor(random() * (file.length - start));
    const part = await rewrittenSource(rewriting, new MemorySource(file)).read(start, length, { signal: NEVER });
    assertEquals(part, whole.subarray(start, start + length));
  }
});

test("readTs() gives every chunk whole when its consumer releases each before it takes the next", async () => {
  const bytes = section([[0x100, 0x1b, null], [0x101, 0x03, "eng"], [0x102, 0x03, "deu"]]);
  const file = concatBytes(Array.from({ length: 2000 }, () => packets(bytes)));
  const rewriting = {
    format: { strideBytes: 188, firstAt: 0, packetCount: file.length / 188 },
    mapPid: PID,
    edit: edit("deu"),
    overlay: null,
  };
  const plain = rewrittenSource(rewriting, new MemorySource(file));
  const expected = await plain.read(100, file.length - 200, { signal: NEVER });
  const lending = new LendingSource(file);
  const at: Uint8Array[] = [];
  const format = rewrittenFormat(rewriting);
  for await (
    const chunk of readTs(format, 100, file.length - 100, rewrittenSource(rewriting, lending), NEVER)
  ) {
    at.push(chunk.slice());
    lending.release(chunk);
  }
  assertEquals(concatBytes(at), expected);
  assertEquals(lending.held, 0);
});

test("editMapPackets() survives any bytes", () => {
  const random = seeded(4);
  for (let round = 0; round < 300; round++) {
    const bytes = packets(section(round % 2 === 0 ? ROWS : MANY), round % 80);
    for (let i = 0; i < 6; i++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    const before = bytes.length;
    editMapPackets(bytes, PID, edit("de", [0x101]));
    openMapEnds(bytes, PID);
    assert(bytes.length === before);
  }
});
