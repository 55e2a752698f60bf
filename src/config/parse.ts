/** Reads an option table from the command line, the environment and a JSON file. Pure: it reads nothing else. */
import { MillraceError } from "../errors.ts";
import type { ValueKind } from "./values.ts";

/** One line of the option table. */
export interface Option<T> {
  /** Name without dashes: the flag, the key in the JSON file and, in upper case, the variable. */
  readonly flag: string;
  readonly kind: ValueKind<T>;
  readonly initial: T;
  /** One sentence for `--help` and README. */
  readonly help: string;
  /** Default to show in `--help` when `initial` cannot express it. */
  readonly shownDefault?: string;
  /** Not for users: left out of `--help` and README. */
  readonly hidden?: boolean;
  /** A flag only: neither a variable nor a key in the file. */
  readonly flagOnly?: boolean;
}

/** The table: field of the configuration → option. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** The configuration described by a table. */
export type Values<Table extends OptionTable> = {
  readonly [Field in keyof Table]: Table[Field] extends Option<infer T> ? T : never;
};

/** Where values come from, strongest first: `args`, `env`, `file`. */
export interface ValueSources {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The configuration file, if one was named. */
  readonly file?: { readonly path: string; readonly text: string } | null;
}

/** Prefix of all variables. */
const ENV_PREFIX = "MILLRACE_";

/** Largest configuration file, characters. */
const MAX_FILE_CHARS = 1 << 20;

/** The variable of an option. */
export function variableName(flag: string): string {
  return ENV_PREFIX + flag.toUpperCase().replaceAll("-", "_");
}

/** The contents of the command line: values by flag in their order, and words that are not flags. */
export interface Arguments {
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly words: readonly string[];
}

/** Splits `args` into flags and words. `--flag=value`, `--flag value` and, for switches, `--flag`. */
export function splitArguments(table: OptionTable, args: readonly string[]): Arguments {
  const options = byFlag(table);
  const values = new Map<string, string[]>();
  const words: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (!arg.startsWith("-") || arg === "-") {
      words.push(arg);
      continue;
    }
    const [name, inline] = splitOnce(arg.replace(/^--?/, ""), "=");
    const option = arg.startsWith("--") ? options.get(name) : undefined;
    if (option === undefined) throw unknownName(`${arg.startsWith("--") ? "--" : "-"}${name}`, name, options.keys());
    let value = inline;
    if (value === null) {
      if (option.kind.placeholder === "") value = "true";
      else if (i + 1 < args.length) value = args[++i]!;
      else throw new MillraceError("config", `--${name} needs a value (${option.kind.placeholder})`);
    }
    const list = values.get(name);
    if (list === undefined) values.set(name, [value]);
    else list.push(value);
  }
  return { values, words };
}

/** The configuration. Throws `config` with one line that names the flag, variable or key at fault. */
export function readOptions<Table extends OptionTable>(
  table: Table,
  args: Arguments,
  env: ValueSources["env"],
  file: ValueSources["file"],
): Values<Table> {
  const keys = file ? readFile(table, file) : new Map<string, unknown>();
  const result: Record<string, unknown> = {};
  for (const [field, option] of Object.entries(table)) {
    const variable = variableName(option.flag);
    const given = args.values.get(option.flag);
    if (given !== undefined) result[field] = parseGiven(option, given, `--${option.flag}`);
    else if (option.flagOnly) result[field] = option.initial;
    else if (env[variable] !== undefined && env[variable] !== "") {
      result[field] = parseOne(option, env[variable]!, variable);
    } else if (keys.has(option.flag)) {
      result[field] = parseJson(option, keys.get(option.flag), `${file!.path}: "${option.flag}"`);
    } else result[field] = option.initial;
  }
  return result as Values<Table>;
}

/** Most unknown variables that are named. */
const MAX_UNKNOWN = 10;

/** One line for each variable that is named like ours and is none: a misspelt option has no effect. */
export function unknownVariables(table: OptionTable, env: ValueSources["env"]): string[] {
  const flags = Object.values(table).filter(({ flagOnly }) => !flagOnly).map(({ flag }) => flag);
  const known = new Set(flags.map(variableName));
  const unknown = Object.keys(env).filter((name) => name.startsWith(ENV_PREFIX) && !known.has(name));
  return unknown.slice(0, MAX_UNKNOWN).map((name) => {
    const near = nearest(name.slice(ENV_PREFIX.length).toLowerCase().replaceAll("_", "-"), flags);
    const hint = near === null ? "see --help" : `did you mean ${variableName(near)}?`;
    return `unknown variable ${oneLine(name.slice(0, 80))} has no effect; ${hint}`;
  });
}

function readFile(table: OptionTable, file: { path: string; text: string }): Map<string, unknown> {
  let parsed: unknown;
  try {
    if (file.text.length > MAX_FILE_CHARS) throw new Error("it is larger than 1 MiB");
    parsed = JSON.parse(file.text);
  } catch (cause) {
    throw new MillraceError("config", `${file.path} is not valid JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new MillraceError("config", `${file.path} must hold one JSON object`);
  }
  const options = byFlag(table);
  const keys = new Map<string, unknown>();
  for (const [key, value] of Object.entries(parsed)) {
    const flag = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (!options.has(flag) || options.get(flag)!.flagOnly) {
      throw unknownName(`${file.path}: key "${key}"`, flag, options.keys());
    }
    keys.set(flag, value);
  }
  return keys;
}

/** A repeated flag extends a list; for other kinds the last one wins, as is usual on command lines. */
function parseGiven(option: Option<unknown>, given: readonly string[], name: string): unknown {
  if (!Array.isArray(option.initial)) return parseOne(option, given[given.length - 1]!, name);
  return given.flatMap((text) => parseOne(option, text, name) as unknown[]);
}

function parseOne(option: Option<unknown>, text: string, name: string): unknown {
  try {
    return option.kind.parse(text);
  } catch (cause) {
    throw new MillraceError("config", `${name} ${(cause as Error).message}`, { cause });
  }
}

function parseJson(option: Option<unknown>, value: unknown, name: string): unknown {
  if (value === null) return option.initial;
  if (Array.isArray(value) && Array.isArray(option.initial)) {
    return value.flatMap((item) => parseJson(option, item, name) as unknown[]);
  }
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    return parseOne(option, String(value), name);
  }
  throw new MillraceError("config", `${name} needs a text, a number or a boolean`);
}

function byFlag(table: OptionTable): Map<string, Option<unknown>> {
  return new Map(Object.values(table).map((option) => [option.flag, option]));
}

function splitOnce(text: string, separator: string): [string, string | null] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
}

function unknownName(shown: string, name: string, known: Iterable<string>): MillraceError {
  const limited = shown.length > 80 ? `${shown.slice(0, 80)}…` : shown;
  const near = nearest(name, known);
  const hint = near === null ? "; see --help" : `; did you mean --${near}?`;
  return new MillraceError("config", `unknown option ${oneLine(limited)}${hint}`);
}

/** Replaces control characters, because the message must stay one line. */
function oneLine(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/[\x00-\x1f\x7f]/g, "?");
}

/** The known name within an edit distance of 2, if any. */
function nearest(name: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = 3;
  if (name.length > 40) return null;
  for (const candidate of known) {
    const distance = editDistance(name, candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}
