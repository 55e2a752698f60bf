import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { uploadSlots } from "../../src/swarm/upload/upload-slots.ts";

test("uploadSlots() serves two on a slow up-link and opens one slot more than the rate is good for", () => {
  for (
    const [bytesPerS, slots] of [[0, 2], [39_999, 2], [40_000, 2], [80_000, 3], [250_000, 7], [280_000, 8], [1e9, 8]]
  ) {
    assertEquals(uploadSlots(8, bytesPerS!), slots, `${bytesPerS} bytes/s`);
  }
});

test("uploadSlots() ends with all peers served when each takes a small video's bitrate and the up-link has room", () => {
  let slots = 2;
  for (let round = 0; round < 12; round++) slots = uploadSlots(8, slots * 40_000);
  assertEquals(slots, 8);
});
