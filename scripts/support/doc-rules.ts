/**
 * Every exported symbol of `src` says what it is, in words that need to be read only once, citing only what is in the
 * repository.
 */
import type { SourceFile } from "./files.ts";

const EXPORT =
  /^export (?:declare )?(?:default )?(?:async )?(?:abstract )?(?:function\*?|class|const|let|interface|type|enum) +([\w$]+)/;

/** Exported symbols without a doc comment and files without a heading, one line each. */
export function docFaults(files: readonly SourceFile[]): string[] {
  const faults: string[] = [];
  for (const { path, text } of files) {
    const lines = text.split("\n");
    const documented = new Set<string>();
    lines.forEach((line, i) => {
      const name = EXPORT.exec(line)?.[1];
      if (name === undefined) return;
      let above = i - 1;
      while (above >= 0 && /^\s*\/\/ deno-lint-ignore/.test(lines[above]!)) above--;
      if (above >= 0 && lines[above]!.trimEnd().endsWith("*/")) documented.add(name);
      else if (!documented.has(name)) faults.push(`${path}:${i + 1}: ${name} has no doc comment`);
    });
  }
  return faults;
}

/** Wording that comments, tests, texts and pages must not contain, each with the reason. */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/See the module\b/, "says nothing: write what the symbol is for"],
  [/\bB\d{1,2}\b(?!%)/, "cites a row of a document that is not in the repository"],
  [/\b(?:live|http-api|behaviour|design)\.md\b/, "cites a document that is not in the repository"],
  [/\banew\b/, 'write "again"'],
  [/\bfor ever\b/, 'write "forever"'],
  [/(?:\/\*\*|\/\/|[.;:]) Whom\b|\bOf what\b/, "puts the object first: begin with the subject"],
  [/\bcom(?:es?|ing) to the same\b|\bas often as not\b/, "has to be read twice: say what happens"],
  [/\bdear(?:er|est)?\b/, 'write "expensive"'],
  [/\b[Ee]ach for (?:it|them|him)sel(?:f|ves)\b/, 'write "separately"'],
  [/\b[Aa]nswers null\b|; answers (?:it|its|the|what|whether)\b/, 'write "returns"'],
  [/\bwhat is no (?!longer\b|more\b)/, 'write "anything but", or name it'],
  [/\bsays? of (?:itself|themselves)\b/, 'write "about"'],
  [/\bwhat (?:came|became|comes|becomes) of (?:it|that|them|this)\b/, 'write "result"'],
  [/\bfor so long\b(?! (?:as|that)\b)/, 'write "for this long"'],
  [/\bso many (?:bytes|characters|milliseconds|seconds)\b/, 'write "this many"'],
  [/`stat`,? tells\b|\b[Tt]ells? of\b|\b(?:is|are|be) told of\b/, 'write "reports" or "hears of"'],
  [/\bmade into (?:AAC|AC-3)\b/, 'write "converted to"'],
  [/\bof late(?=[,.;:])/, 'write "recently"'],
  [/\b[Ll]ets? go of\b/, 'write "releases"'],
  [/(?:\/\*\*|\/\/|[.;:]) Whoever\b/, "begins with a riddle: name the subject"],
  [/\/\*\* It\b/, "names no subject: say what it is about"],
  [/(?:\/\*\*|\/\/|[.;]) Who\b(?!\?)/, "begins with a riddle: name the subject"],
  [/\/\*\* Tells\b/, 'write "Reports", "Notifies" or "Shows"'],
  [
    /\b(?:metadata|descriptions?|pieces?|blocks?|bytes|segments?|headers?) (?:is|are) here\b/,
    'write "downloaded", "known" or "has arrived"',
  ],
  [/\bas far as (?:the page uses|(?:it is|they are) used|there is room|it matters)\b/, 'write "of" or "while"'],
  [/\bbut for (?:its|the|those|what)\b/, 'write "except"'],
  [/\bgo(?:es)? on behind\b/, 'write "continues after"'],
  [/\b[Oo]ne (?:element|entry|line|message|number|object|process|request) an? \w/, 'write "per"'],
];

/** Lines of `files` with such wording. Percent-encoded bytes (`%5Bhu`) don't count as citations. */
export function wordingFaults(files: readonly SourceFile[]): string[] {
  const faults: string[] = [];
  for (const { path, text } of files) {
    text.split("\n").forEach((line, i) => {
      const readable = line.replace(/%[0-9A-F]{2}/gi, " ");
      for (const [pattern, why] of REFUSED) {
        const found = pattern.exec(readable);
        if (found !== null) faults.push(`${path}:${i + 1}: "${found[0]}" ${why}`);
      }
    });
  }
  return faults;
}

/** `readme` with `table` between `<!-- name -->` and `<!-- /name -->`; null when it has no such marks. */
export function withTable(readme: string, name: string, table: string): string | null {
  const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
  const [from, to] = [readme.indexOf(open), readme.indexOf(close)];
  if (from < 0 || to < from) return null;
  return `${readme.slice(0, from)}${open}\n${table}\n\n${readme.slice(to)}`;
}
