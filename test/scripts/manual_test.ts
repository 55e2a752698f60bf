import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { manPage, manualFiles } from "../../scripts/support/manual.ts";
import { shownOptions } from "../../src/config.ts";

/** Requests of the language of manual pages that the page uses. */
const REQUESTS = /^\.(?:TH|SH|TP|B|nf|fi)\b/;

test("manualFiles() names every option of the table in the page and in each shell's completion", () => {
  const spelling: readonly [RegExp, (flag: string) => string][] = [
    [/\.1$/, (flag) => `--${flag}`.replaceAll("-", "\\-")],
    [/bash|zsh/, (flag) => `--${flag}`],
    [/fish/, (flag) => `-l ${flag} `],
  ];
  const files = Object.entries(manualFiles());
  assertEquals(files.length, 4);
  for (const [name, text] of files) {
    const spelt = spelling.find(([pattern]) => pattern.test(name))![1];
    for (const { flag } of shownOptions()) assert(text.includes(spelt(flag)), `${name} lacks --${flag}`);
  }
});

test("manPage() begins no line with a full stop when it is text", () => {
  for (const line of manPage().split("\n")) assert(!/^[.']/.test(line) || REQUESTS.test(line), line);
});
