import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { nameFaults } from "../../scripts/support/name-rules.ts";

test("nameFaults() refuses a second file that exports a type of the same name", () => {
  const files = [
    { path: "src/a.ts", text: "export interface Mark {}\nexport type Place = number;\nexport const Run = 1;" },
    { path: "src/b.ts", text: "export abstract class Mark {}\ninterface Place {}\nexport class Run {}" },
    { path: "src/c.ts", text: "  export type Indented = 1;\nexport class Mark {}" },
  ];
  assertEquals(nameFaults(files), [
    "src/b.ts: exports a type Mark, as src/a.ts does; name it by its domain",
    "src/c.ts: exports a type Mark, as src/a.ts does; name it by its domain",
  ]);
});

test("nameFaults() accepts overloads of one file and types that are passed on", () => {
  const both = "export interface Part {}\nexport class Part {}\n";
  assertEquals(
    nameFaults([{ path: "src/a.ts", text: both }, { path: "src/b.ts", text: 'export type { Part } from "./a.ts";' }]),
    [],
  );
});
