import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { MAX_WINDOW_BYTES, PieceWindow } from "../../src/live/node/stream/piece-window.ts";
import { simulatedHeader } from "../simulation/live-network.ts";

test("PieceWindow holds the window's time of a stream, and of one that is too fast 48 MiB", () => {
  const lengthBytes = 65_536;
  const most = MAX_WINDOW_BYTES / lengthBytes;
  for (const [everyMs, held] of [[100, 601], [1, most]] as const) {
    const window = new PieceWindow(60_000);
    for (let seq = 0; seq < 3000; seq++) {
      window.addHeader(simulatedHeader({ seq, timestampMs: 1_000_000 + everyMs * seq, flags: 0, lengthBytes }));
    }
    assertEquals(window.newest?.seq, 2999);
    assertEquals(3000 - window.base, held, `a piece every ${everyMs} ms`);
    assert(window.get(window.base) !== undefined && window.get(window.base - 1) === undefined);
  }
});
