/** What warms the program up works: its errors are ignored, so nobody else would notice. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { playShortFilms, warmUp } from "../../platform/warm-up/warm-up.ts";
import { FakeClock } from "../support/fake-clock.ts";

const { signal } = new AbortController();

test("playShortFilms() converts both films whole", async () => {
  const sizes = await playShortFilms(signal);
  assertEquals(sizes.length, 2);
  // 100 pictures of a packet at least, and sound.
  for (const size of sizes) assert(size > 100 * PACKET_BYTES && size % PACKET_BYTES === 0, `${size} bytes`);
});

test("warmUp() ends without an error when nobody listens at its address", async () => {
  await warmUp("http://127.0.0.1:1", new FakeClock());
});
