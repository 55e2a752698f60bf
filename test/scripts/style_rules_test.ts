import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { styleFaults } from "../../scripts/support/style-rules.ts";

const faults = (text: string) => styleFaults([{ path: "src/x.ts", text }]);

test("styleFaults() refuses members that are private by the keyword, but constructors", () => {
  assertEquals(faults("class A {\n  private x = 1;\n  #y = 2;\n\n  private readonly z = `a`;\n}"), [
    "src/x.ts:2: private by the keyword; write #name",
    "src/x.ts:5: private by the keyword; write #name",
  ]);
  assertEquals(faults("class A {\n  private constructor() {}\n  #x = 1;\n}"), []);
});

test("styleFaults() passes over comments and texts", () => {
  assertEquals(faults("/**\n  private x\n */\nconst a = `\n  private y = 1;\n`;"), []);
});

test("styleFaults() refuses constants of a module in small letters, not those of a function", () => {
  assertEquals(
    faults('const A_MS = 1;\nconst b = 64 * 1024;\nexport const c: string = "x";\nconst d = f(1);\n  const e = 1;'),
    [
      "src/x.ts:2: the constant b is not in capitals",
      "src/x.ts:3: the constant c is not in capitals",
    ],
  );
});

test("styleFaults() refuses listeners that end by the option signal", () => {
  assertEquals(
    faults(
      'a.addEventListener("abort", f, { once: true, signal: b });\n  this.#x.addEventListener("y", z, { signal });\n' +
        'signal.addEventListener("abort", () => g(signal), { once: true });',
    ),
    [
      "src/x.ts:1: the option signal of addEventListener; call removeEventListener",
      "src/x.ts:2: the option signal of addEventListener; call removeEventListener",
    ],
  );
});
