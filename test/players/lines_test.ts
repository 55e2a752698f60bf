import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { LastLines, linesOf } from "../../src/players/lines.ts";

const streamOf = (...chunks: readonly string[]) =>
  ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));

async function all(stream: ReadableStream<Uint8Array>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(stream)) lines.push(line);
  return lines;
}

test("linesOf() joins lines across chunks, with either line end, and yields a last line without one", async () => {
  assertEquals(await all(streamOf("a", "b\r\nc\n", "\nd")), ["ab", "c", "", "d"]);
  assertEquals(await all(streamOf("a\n")), ["a"]);
  const umlaut = new TextEncoder().encode("ä\n");
  assertEquals(await all(ReadableStream.from([umlaut.subarray(0, 1), umlaut.subarray(1)])), ["ä"]);
});

test("linesOf() drops the rest of a line that is longer than 64 KiB, and continues with the next", async () => {
  const lines = await all(streamOf("x".repeat(60_000), "y".repeat(60_000), "z\nnext\n"));
  assertEquals(lines.map((line) => line.length), [65_536, 4]);
  assertEquals(lines[1], "next");
});

test("LastLines.newest() knows the newest of the last 20 lines, and reads on however many come", async () => {
  const numbers = Array.from({ length: 50 }, (_, n) => `line ${n}\n`);
  let heard = 0;
  let finished!: () => void;
  const over = new Promise<void>((resolve) => finished = resolve);
  const lines = new LastLines(streamOf(...numbers), () => ++heard === 50 && finished());
  await over;
  assertEquals(lines.newest(/line 3\d/), "line 39");
  assertEquals(lines.newest(/line 29/), null);
  assertEquals(lines.newest(/./), "line 49");
});
