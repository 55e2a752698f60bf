import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { linkFaults } from "../../scripts/support/link-rules.ts";

const PAGES = [
  {
    path: "README.md",
    text: "# One\n[a](src/README.md) [b](src/README.md#the-parts) [c](#one) [d](https://x.example/#y)\n" +
      "[e](src/gone.ts) [f](#two) [g](src/README.md#parts) `[h](no)`\n```\n[i](no)\n# Two\n```\n",
  },
  { path: "src/README.md", text: "## The *parts*!\n[up](../README.md#one) [beside](a.ts) [out](../../x)\n" },
];

test("linkFaults() reports links to missing files and headings, but not code or web addresses", () => {
  const files = new Set(["README.md", "src/README.md", "src/a.ts"]);
  assertEquals(linkFaults(PAGES, (path) => files.has(path)), [
    "README.md: src/gone.ts leads nowhere",
    "README.md: #two leads nowhere",
    "README.md: src/README.md#parts leads nowhere",
    "src/README.md: ../../x leads nowhere",
  ]);
});

test("linkFaults() numbers repeated headings as GitHub does", () => {
  const page = { path: "a.md", text: "# X\n# X\n[1](#x) [2](#x-1) [3](#x-2)\n" };
  assertEquals(linkFaults([page], () => true), ["a.md: #x-2 leads nowhere"]);
});
