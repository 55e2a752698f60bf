/** Style that the linter has no rule for. */
import type { SourceFile } from "./files.ts";
import { tokenize } from "./lexer.ts";

/** A member with the keyword. A constructor has no other way to be private. */
const PRIVATE = /^[ \t]+private (?!constructor\b)/gm;

/** Members of classes that are private by the keyword, one line each: the runtime does not know it, `#name` it does. */
export function styleFaults(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    tokenize(text).filter(({ kind }) => kind === "code").flatMap(({ text: code, line }) =>
      [...code.matchAll(PRIVATE)].map(({ index }) =>
        `${path}:${line + code.slice(0, index).split("\n").length - 1}: private by the keyword; write #name`
      )
    )
  );
}
