/** Sentences of the project's pages are short enough to be read once. */
import type { SourceFile } from "./files.ts";

/** Most words of a sentence. A colon ends one, too: what follows it is read by itself. */
const MOST_WORDS = 40;

const CODE_BLOCK = /^```[\s\S]*?^```/gm;
/** Tables made from code: their texts are those of the code. */
const GENERATED = /<!-- (\w+) -->[\s\S]*?<!-- \/\1 -->/g;
const LIST_MARK = /^\s*(?:[-*]|\d+\.|#+) /;

/** Sentences of `pages` with more than 40 words, one line each. Each item of a list and cell of a table stands alone. */
export function sentenceFaults(pages: readonly SourceFile[]): string[] {
  return pages.flatMap(({ path, text }) =>
    blocksOf(text).flatMap((block) => block.split(/(?<=[.!?:]["'*)]*)\s+/)).flatMap((sentence) => {
      const words = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
      const begin = sentence.slice(0, 60);
      return words > MOST_WORDS ? [`${path}: a sentence of ${words} words, more than ${MOST_WORDS}: "${begin}…"`] : [];
    })
  );
}

/** Paragraphs, list items and table cells of a page. */
function blocksOf(text: string): string[] {
  const blocks: string[] = [""];
  for (const line of text.replace(GENERATED, "").replace(CODE_BLOCK, "").split("\n")) {
    const isApart = line.trim() === "" || line.startsWith("    ");
    if (isApart) blocks.push("");
    else if (line.trimStart().startsWith("|")) blocks.push(...line.split("|"), "");
    else if (LIST_MARK.test(line)) blocks.push(line.replace(LIST_MARK, ""));
    else blocks.push(`${blocks.pop()!} ${line.trim()}`);
  }
  return blocks.map((block) => block.trim()).filter((block) => block !== "");
}
