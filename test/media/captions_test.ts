/** Captions in the pictures of films in MP4 and Matroska. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { CountingSource, fixture, NEVER, openBytes } from "./support/files.ts";

/** Words of x264 in its first picture, in whose place captions of CEA-608 and CEA-708 stand. */
const WORDS = "options: cabac";
const CAPTIONS = [0x47, 0x41, 0x39, 0x34, 3, 0x42, 0xff, 0xfc, 0x94, 0x20, 0xff, 0x02, 0x21, 0xff];

/** The film `name`, with captions or without. */
function film(name: string, hasCaptions: boolean): Uint8Array {
  const bytes = fixture(name).slice();
  const at = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("").indexOf(WORDS);
  if (at < 0) throw new Error(`${name} is not of x264`);
  if (hasCaptions) bytes.set(CAPTIONS, at);
  return bytes;
}

for (const name of ["mp4-front.mp4", "mp4-fragmented-sidx.mp4", "mkv-cues.mkv"]) {
  test(`Presentation.findCaptions() names those in the pictures of ${name}`, async () => {
    for (const fragmented of [false, true]) {
      const bytes = film(name, true);
      const { findCaptions } = await openBytes(bytes, { fragmented });
      const source = new CountingSource(bytes);
      assertEquals(await findCaptions!(source, NEVER), ["CC1", "SERVICE1"]);
      const again = new CountingSource(bytes);
      await findCaptions!(again, NEVER);
      assertEquals(again.bytesRead, 0);
      const plain = film(name, false);
      const { findCaptions: findNone } = await openBytes(plain, { fragmented });
      assertEquals(await findNone!(new CountingSource(plain), NEVER), []);
    }
  });
}

test("Presentation.findCaptions() is absent where pictures have no room for captions", async () => {
  assertEquals((await openBytes(fixture("webm-vp9-opus.webm"))).findCaptions, undefined);
});
