/** What a Matroska track says about its picture besides the codec. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { openMatroska } from "../../src/media/index/mkv/open-matroska.ts";
import type { Track } from "../../src/media/model/types.ts";
import { MemorySource } from "../support/memory-source.ts";
import { cluster, element, floatBytes, matroska, simpleBlock, trackEntry } from "./mkv-support.ts";
import { NEVER } from "./support/files.ts";

async function pictureWith(...more: readonly Uint8Array[]): Promise<Track> {
  const file = matroska([cluster(0, [simpleBlock(1, 0, 0x80, new Uint8Array(100))])], {
    tracks: [trackEntry(1, "video", "V_MPEG2", more)],
    durationMs: 40,
  });
  return (await openMatroska(new MemorySource(file), { fileName: "a.mkv", signal: NEVER })).tracks[0]!;
}

/** A video element whose projection is rolled by `degrees` anticlockwise. */
const rolled = (degrees: number) => element(0xe0, [element(0x7670, [element(0x7675, floatBytes(degrees))])]);

test("openMatroska() takes the turn of a picture from its projection, clockwise", async () => {
  for (const [roll, clockwise] of [[-90, 90], [90, 270], [180, 180], [0, undefined], [1e9, undefined]] as const) {
    assertEquals((await pictureWith(rolled(roll))).rotationDegrees, clockwise, String(roll));
  }
});

test("openMatroska() takes Dolby Vision's configuration from a block addition mapping", async () => {
  const record = Uint8Array.of(1, 0, 8 << 1, 0x35, 0x10, 0, 0);
  const mapping = (type: number) => element(0x41e4, [element(0x41e7, type), element(0x41ed, record)]);
  const { dolbyVision } = await pictureWith(mapping(0x64767643));
  assertEquals([dolbyVision?.profile, dolbyVision?.compatibility], [8, 1]);
  assertEquals(dolbyVision?.config, record.slice(0, 5));
  assertEquals((await pictureWith(mapping(4))).dolbyVision, undefined);
  assertEquals((await pictureWith(mapping(0x64766343), mapping(4))).dolbyVision?.profile, 8);
});
