/** Log lines: the name of a peer or file can neither forge a line nor control the terminal. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { createLogger } from "../../platform/shared/logger.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("createLogger() leaves no control character of text from outside in a text line", () => {
  const lines: string[] = [];
  const log = createLogger({ clock: new FakeClock(), write: (line) => void lines.push(line) });
  const hostile = "a\r\n\x1b[2J\x7f\x9b2J\x85\u2028b";
  log.log("info", hostile, { name: hostile, names: [hostile] });
  assertEquals(lines.length, 1);
  // deno-lint-ignore no-control-regex
  assertEquals(lines[0]!.slice(0, -1).match(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g), null);
});
