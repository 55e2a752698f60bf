/** The lines of a script that the page holds. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { linesNow, MAX_LINES, readLines } from "../../src/webui/drawn/script-lines.ts";

const dialogue = (from: string, to: string, text: string) => `Dialogue: 0,${from},${to},Default,,0,0,0,,${text}`;

test("readLines() reads the times of lines, and leaves out what is none", () => {
  const line = dialogue("1:02:03.45", "1:02:04.50", "{\\k10}a, b");
  assertEquals(readLines(`${line}\n[Script Info]\nDialogue: 0,x,y\n`), [{ startS: 3723.45, endS: 3724.5, line }]);
});

test("linesNow() keeps lines that are shown still, though their file is far away", () => {
  const [long, over] = readLines(
    [dialogue("0:00:01.00", "0:10:00.00", "long"), dialogue("0:00:01.00", "0:00:02.00", "over")].join("\n"),
  );
  const near = readLines(dialogue("0:01:00.00", "0:01:01.00", "near"));
  assertEquals(linesNow([near], [long!, over!], 60), { lines: [long!, ...near], leftOut: 0 });
  assertEquals(linesNow([[long!]], [long!], 60).lines, [long!], "once");
});

test("linesNow() holds 10,000 of a million lines, and counts the others", () => {
  let held: ReturnType<typeof linesNow> = { lines: [], leftOut: 0 };
  for (let file = 0; file < 10; file++) {
    const texts = Array.from({ length: 100_000 }, (_, n) => dialogue("0:00:01.00", "0:10:00.00", `${file} ${n}`));
    held = linesNow([readLines(texts.join("\n"))], held.lines, 60);
  }
  assertEquals([held.lines.length, held.leftOut], [MAX_LINES, 100_000]);
});
