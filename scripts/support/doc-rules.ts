/** Every exported symbol of `src` says what it is. */
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

/** `readme` with `table` between `<!-- name -->` and `<!-- /name -->`; null when it has no such place. */
export function withTable(readme: string, name: string, table: string): string | null {
  const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
  const [from, to] = [readme.indexOf(open), readme.indexOf(close)];
  if (from < 0 || to < from) return null;
  return `${readme.slice(0, from)}${open}\n${table}\n\n${readme.slice(to)}`;
}
