import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { sentenceFaults } from "../../scripts/support/page-rules.ts";

/** A sentence of `count` words. */
const words = (count: number) => `${Array.from({ length: count }, (_, i) => `word${i}`).join(" ")}.`;

test("sentenceFaults() reports a sentence of more than 40 words, also across lines", () => {
  const long = words(41).replaceAll(" word2", "\nword2");
  assertEquals(sentenceFaults([{ path: "README.md", text: `# Title\n\n${words(40)} ${long}\n` }]), [
    'README.md: a sentence of 41 words, more than 40: "word0 word1 word2 word3 word4 word5 word6 word7 word8 word9 …"',
  ]);
});

test("sentenceFaults() takes list items, table cells and what follows a colon apart, and ignores code and generated tables", () => {
  const text = [
    `- ${words(30)}`,
    `- ${words(30)}`,
    "",
    `| ${words(30)} | ${words(30)} |`,
    `1. ${words(30).replace(".", ":")} ${words(30)}`,
    "",
    `    ${words(50)}`,
    "",
    "```",
    words(50),
    "```",
    "<!-- options -->",
    words(50),
    "<!-- /options -->",
  ].join("\n");
  assertEquals(sentenceFaults([{ path: "README.md", text }]), []);
});
