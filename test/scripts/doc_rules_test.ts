import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { docFaults, withOptions } from "../../scripts/support/doc-rules.ts";

test("docFaults() names exported symbols without a doc comment", () => {
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

test("withOptions() puts the table between its marks and nothing elsewhere", () => {
  assertEquals(
    withOptions("# a\n<!-- options -->\nold\n<!-- /options -->\nb", "| $& |"),
    "# a\n<!-- options -->\n\n| $& |\n\n<!-- /options -->\nb",
  );
  assertEquals(withOptions("# a", "| x |"), null);
});
