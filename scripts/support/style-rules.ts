/** Style that the linter has no rule for. */
import type { SourceFile } from "./files.ts";
import { tokenize } from "./lexer.ts";

/** A member with the keyword. A constructor has no other way to be private. */
const PRIVATE = /^[ \t]+private (?!constructor\b)/gm;

/** A number or text under a name in small letters, at the top of a module. */
const SMALL_CONSTANT = /^(?:export )?const ([a-z]\w*)(?:: \w+)? = (?:-?\d[\w.]*|[\d_ *+.-]+|"[^"]*");/gm;

/** A listener that is to end by a signal. Node often loses that signal, and keeps the listener with all that it refers to. */
const LINKED = /^ *[\w.#!?]*addEventListener\([^\n]{0,150}\bsignal ?[:,}]/gm;

/**
 * One line for each fault: members of classes that are private by the keyword, which the runtime does not know, constants
 * of a module that are not in capitals, and listeners that end by the option `signal`.
 */
export function styleFaults(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => [
    ...codeOf(text).flatMap(({ code, line }) =>
      [...code.matchAll(PRIVATE)].map(({ index }) =>
        `${path}:${lineAt(code, line, index)}: private by the keyword; write #name`
      )
    ),
    ...[...text.matchAll(SMALL_CONSTANT)].map(({ index, 1: name }) =>
      `${path}:${lineAt(text, 1, index)}: the constant ${name} is not in capitals`
    ),
    ...[...text.matchAll(LINKED)].map(({ index }) =>
      `${path}:${lineAt(text, 1, index)}: the option signal of addEventListener; call removeEventListener`
    ),
  ]);
}

function codeOf(text: string): { code: string; line: number }[] {
  return tokenize(text).filter(({ kind }) => kind === "code").map(({ text: code, line }) => ({ code, line }));
}

function lineAt(text: string, firstLine: number, index: number): number {
  return firstLine + text.slice(0, index).split("\n").length - 1;
}
