/**
 * No regular expression takes more than linear time on any text: most of them read strangers' input, and some hundred
 * KB of it would freeze the engine for seconds if one were quadratic.
 */
import { analyse } from "scslre";
import type { SourceFile } from "./files.ts";
import { tokenize } from "./lexer.ts";

/** Regular expressions built from text at run time cannot be checked here. */
const MADE_OF_TEXT = /\bRegExp\s*\(/g;

/** Result of a check: the number of literals, and one line per fault. */
export interface RegexReport {
  readonly literals: number;
  readonly faults: readonly string[];
}

/** Checks every regular expression of `files`. Equal literals are analysed once. */
export function regexFaults(files: readonly SourceFile[]): RegexReport {
  const verdicts = new Map<string, string | null>();
  const faults: string[] = [];
  let literals = 0;
  for (const { path, text } of files) {
    for (const token of tokenize(text)) {
      if (token.kind === "code") {
        for (const { index } of token.text.matchAll(MADE_OF_TEXT)) {
          const line = token.line + token.text.slice(0, index).split("\n").length - 1;
          faults.push(`${path}:${line}: a RegExp built from text cannot be checked; write a literal`);
        }
      }
      if (token.kind !== "regex") continue;
      literals++;
      if (!verdicts.has(token.text)) verdicts.set(token.text, verdict(token.text));
      const fault = verdicts.get(token.text);
      if (fault) faults.push(`${path}:${token.line}: ${token.text} ${fault}`);
    }
  }
  return { literals, faults };
}

/** What is wrong with a literal; null when it takes linear time. */
function verdict(literal: string): string | null {
  const slash = literal.lastIndexOf("/");
  // A sticky search starts only at `lastIndex`, never at later characters, but the analysis does not know that flag.
  const [source, flags] = [literal.slice(1, slash), literal.slice(slash + 1)];
  const reportTypes = { Trade: true, Self: true, Move: !flags.includes("y") };
  const { reports } = analyse({ source, flags }, { reportTypes });
  const [worst] = reports.toSorted((a, b) => Number(b.exponential) - Number(a.exponential));
  if (worst === undefined) return null;
  const { source: character } = worst.character.literal;
  return `takes ${worst.exponential ? "exponential" : "quadratic"} time for long runs of /${character}/`;
}
