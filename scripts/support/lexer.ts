/** Separates code from comments and text in TypeScript, well enough for the project's own checks. */

/** One piece of a source file. */
export interface Token {
  /** `regex`: a literal with its slashes and flags. */
  readonly kind: "code" | "comment" | "string" | "regex";
  readonly text: string;
  /** Line on which it begins, 1-based. */
  readonly line: number;
}

/** Code after which a `/` begins a regular expression, not a division. */
const BEFORE_REGEX = /(?:^|[=(,:;!&|?{}[\]+\-*%~^<>]|\b(?:return|typeof|case|in|of|await|yield|void|delete))\s*$/;

/** Characters of code examined before a `/`: more than any word of `BEFORE_REGEX` with the spaces and line ends around it. */
const CONTEXT_CHARS = 200;

/** Splits `source`. Template literals count as text up to each `${`; everything within the braces is code. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let code = "";
  /** The code so far without comments, each text in it as one letter: shows whether a `/` divides. */
  let context = "";
  let line = 1;
  let codeLine = 1;
  /** Number of open braces in each template literal being evaluated. */
  const templates: number[] = [];
  let at = 0;
  const flush = () => {
    if (code !== "") tokens.push({ kind: "code", text: code, line: codeLine });
    code = "";
  };
  const take = (kind: "comment" | "string" | "regex", end: number) => {
    flush();
    const text = source.slice(at, end);
    if (kind !== "comment") context = text.endsWith("${") ? "(" : "x";
    tokens.push({ kind, text, line });
    line += text.split("\n").length - 1;
    codeLine = line;
    at = end;
  };
  const template = (from: number) => {
    let end = from;
    while (end < source.length && source[end] !== "`" && !source.startsWith("${", end)) {
      end += source[end] === "\\" ? 2 : 1;
    }
    if (source.startsWith("${", end)) {
      templates.push(0);
      take("string", end + 2);
    } else take("string", end + 1);
  };
  while (at < source.length) {
    const c = source[at]!;
    if (source.startsWith("//", at)) take("comment", indexOr(source, "\n", at));
    else if (source.startsWith("/*", at)) take("comment", indexOr(source, "*/", at + 2) + 2);
    else if (c === '"' || c === "'") take("string", endOfQuoted(source, at, c));
    else if (c === "`") template(at + 1);
    else if (c === "/" && BEFORE_REGEX.test(context) && endOfRegex(source, at) > 0) {
      take("regex", endOfRegex(source, at));
    } else if (c === "}" && templates.length > 0 && templates[templates.length - 1] === 0) {
      templates.pop();
      template(at + 1);
    } else {
      if (templates.length > 0 && c === "{") templates[templates.length - 1]!++;
      if (templates.length > 0 && c === "}") templates[templates.length - 1]!--;
      if (code === "") codeLine = line;
      if (c === "\n") line++;
      code += c;
      context = (context + c).slice(-CONTEXT_CHARS);
      at++;
    }
  }
  flush();
  return tokens;
}

function indexOr(source: string, text: string, from: number): number {
  const index = source.indexOf(text, from);
  return index < 0 ? source.length : index;
}

function endOfQuoted(source: string, from: number, quote: string): number {
  let end = from + 1;
  while (end < source.length && source[end] !== quote && source[end] !== "\n") end += source[end] === "\\" ? 2 : 1;
  return end + 1;
}

/** End of the regular expression at `from`, including flags; 0 when there is none. */
function endOfRegex(source: string, from: number): number {
  let inClass = false;
  for (let end = from + 1; end < source.length && source[end] !== "\n"; end++) {
    const c = source[end];
    if (c === "\\") end++;
    else if (c === "[") inClass = true;
    else if (c === "]") inClass = false;
    else if (c === "/" && !inClass) {
      while (/[a-z]/.test(source[end + 1] ?? "")) end++;
      return end + 1;
    }
  }
  return 0;
}
