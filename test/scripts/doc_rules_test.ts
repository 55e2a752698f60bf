import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { docFaults, withTable, wordingFaults } from "../../scripts/support/doc-rules.ts";

test("docFaults() reports exported symbols without a doc comment", () => {
  const text = [
    "/** A. */",
    "export const a = 1;",
    "export function b() {}",
    "/**",
    " * C.",
    " */",
    "// deno-lint-ignore no-explicit-any",
    "export async function c(): Promise<any> {}",
    "/** D, overloaded. */",
    "export function d(x: string): string;",
    "export function d(x: number): number;",
    "",
    "export abstract class E {}",
    "const f = 1;",
    "export { f };",
    "export type { G } from './g.ts';",
    "export type H = 1;",
  ].join("\n");
  assertEquals(docFaults([{ path: "src/x.ts", text }]), [
    "src/x.ts:3: b has no doc comment",
    "src/x.ts:13: E has no doc comment",
    "src/x.ts:17: H has no doc comment",
  ]);
});

test("withTable() puts the table between its own marks and nothing elsewhere", () => {
  assertEquals(
    withTable("# a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\nold\n<!-- /y -->\n", "y", "| $& |"),
    "# a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\n\n| $& |\n\n<!-- /y -->\n",
  );
  for (const readme of ["# a", "<!-- /x --><!-- x -->\n", "<!-- x -->\n"]) {
    assertEquals(withTable(readme, "x", "| x |"), null, readme);
  }
});

test("wordingFaults() reports lines with refused wording, and ignores percent-encoded bytes", () => {
  const text = [
    "/** See the module. */",
    "// Fetched anew (B12), as live.md says.",
    'const query = "%5B12%B6%C3";',
    "// Waits for ever.",
  ].join("\n");
  assertEquals(wordingFaults([{ path: "a.ts", text }]), [
    'a.ts:1: "See the module" says nothing: write what the symbol is for',
    'a.ts:2: "B12" cites a row of a document that is not in the repository',
    'a.ts:2: "live.md" cites a document that is not in the repository',
    'a.ts:2: "anew" write "again"',
    'a.ts:4: "for ever" write "forever"',
  ]);
});

test("wordingFaults() reports objects put first and turns that have to be read twice", () => {
  const text = [
    "/** Whom the user named is dialled first. */",
    "// Of what is lost, the newest comes first.",
    "// The order comes to the same, which is dearer as often as not.",
    'test("f() counts them each for itself", () => {});',
    "// Decides whom we dial: a peer to whom we owe something.",
    "// The sum of what each reader needs.",
  ].join("\n");
  assertEquals(wordingFaults([{ path: "a.ts", text }]), [
    'a.ts:1: "/** Whom" puts the object first: begin with the subject',
    'a.ts:2: "Of what" puts the object first: begin with the subject',
    'a.ts:3: "comes to the same" has to be read twice: say what happens',
    'a.ts:3: "dearer" write "expensive"',
    'a.ts:4: "each for itself" write "separately"',
  ]);
});

test("wordingFaults() reports words used in another sense than English has, and nothing that reads right", () => {
  const text = [
    "/** Reads a list; answers its entries. */",
    "// Null for what is no list, and what came of it.",
    "// A member says of itself that it can be dialled.",
    'test("f() answers null when empty", () => {});',
    "/** The server answers 404; answers that users gave are kept. */",
    "// Removes what is no longer needed, and says what of them is known.",
  ].join("\n");
  assertEquals(wordingFaults([{ path: "a.ts", text }]), [
    'a.ts:1: "; answers its" write "returns"',
    'a.ts:2: "what is no " write "anything but", or name it',
    'a.ts:2: "what came of it" write "result"',
    'a.ts:3: "says of itself" write "about"',
    'a.ts:4: "answers null" write "returns"',
  ]);
});

test("wordingFaults() reports comments without a subject, and words that stand for several things", () => {
  const text = [
    "/** It has everything. */",
    "// Waits. Who comes late, waits longer.",
    "/** Tells the peer which pieces are here, as far as there is room. */",
    "/** Whether it has everything; who knows; the peer is here. */",
  ].join("\n");
  assertEquals(wordingFaults([{ path: "a.ts", text }]), [
    'a.ts:1: "/** It" names no subject: say what it is about',
    'a.ts:2: ". Who" begins with a riddle: name the subject',
    'a.ts:3: "/** Tells" write "Reports", "Notifies" or "Shows"',
    'a.ts:3: "pieces are here" write "downloaded", "known" or "has arrived"',
    'a.ts:3: "as far as there is room" write "of" or "while"',
  ]);
});

test("wordingFaults() reports turns that read as if from another century, and the same words where they read right", () => {
  const text = [
    "/** Whoever sends nothing for so long is left; `stat` tells. */",
    "// Lets go of so many bytes, but for the last.",
    "// One line a file, of late, goes on behind the last; nobody tells of it, and sound made into AAC stays.",
    "// It lasted for so long that whoever asks of late blocks is told; one line of a file; not for us but for them.",
  ].join("\n");
  assertEquals(wordingFaults([{ path: "a.ts", text }]), [
    'a.ts:1: "for so long" write "for this long"',
    'a.ts:1: "`stat` tells" write "reports" or "hears of"',
    'a.ts:1: "/** Whoever" begins with a riddle: name the subject',
    'a.ts:2: "so many bytes" write "this many"',
    'a.ts:2: "Lets go of" write "releases"',
    'a.ts:2: "but for the" write "except"',
    'a.ts:3: "tells of" write "reports" or "hears of"',
    'a.ts:3: "made into AAC" write "converted to"',
    'a.ts:3: "of late" write "recently"',
    'a.ts:3: "goes on behind" write "continues after"',
    'a.ts:3: "One line a f" write "per"',
  ]);
});
