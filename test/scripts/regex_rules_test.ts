import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { regexFaults } from "../../scripts/support/regex-rules.ts";
import { tokenize } from "../../scripts/support/lexer.ts";

const faults = (...lines: string[]) => regexFaults([{ path: "src/x.ts", text: lines.join("\n") }]).faults;

test("regexFaults() reports regular expressions that take more than linear time", () => {
  assertEquals(faults("const a = text.replace(", '  /\\/+$/, "");'), [
    "src/x.ts:2: /\\/+$/ takes quadratic time for long runs of /\\//",
  ]);
  assertEquals(faults("if (/^(a+)+$/.test(x)) y();"), [
    "src/x.ts:1: /^(a+)+$/ takes exponential time for long runs of /a/",
  ]);
  assertEquals(faults("return /^\\s*x?\\s*$/i;"), [
    "src/x.ts:1: /^\\s*x?\\s*$/i takes quadratic time for long runs of /\\s/",
  ]);
});

test("regexFaults() refuses regular expressions built from text", () => {
  const message = "a RegExp built from text cannot be checked; write a literal";
  assertEquals(faults("const a = 1;", "const b = new RegExp(text);"), [`src/x.ts:2: ${message}`]);
});

test("regexFaults() accepts linear ones, divisions, comments and texts", () => {
  assertEquals(faults("/^[a-z]+$/.test(x);", "/a{1,9}b/g;", "/[a-z]+=/y;"), []);
  assertEquals(faults("// /a+$/", "/* /a+$/ */", "const a = '/a+$/';", "const b = c / d+$/ e;"), []);
});

test("tokenize() distinguishes a regular expression from a division after a text, a template and a comment", () => {
  const regexes = (source: string) => tokenize(source).filter(({ kind }) => kind === "regex").map(({ text }) => text);
  assertEquals(regexes("x = 'a' / b / c;"), []);
  assertEquals(regexes("x = `${a / b / c}${/d/.test(e)}`;"), ["/d/"]);
  assertEquals(regexes("x = a /* b */ / c / d;"), []);
  assertEquals(regexes("x = /* a */ /[/]b/giu;"), ["/[/]b/giu"]);
});
