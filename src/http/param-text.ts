/** From the text of parameters to values, and what is wrong with them: the same for playback and methods. */
import type * as z from "zod";

/** 0, 1, true or false, in any case; null for other texts. */
export function booleanOf(text: string): boolean | null {
  const value = text.trim().toLowerCase();
  if (value === "1" || value === "true") return true;
  return value === "0" || value === "false" ? false : null;
}

/** A decimal integer of at most 15 digits, which a number holds exactly; null for other texts. */
export function integerOf(text: string): number | null {
  const value = text.trim();
  return /^-?\d{1,15}$/.test(value) ? Number(value) : null;
}

/** The values of a comma-separated list; empty ones are left out. */
export function partsOf(text: string): string[] {
  return text.split(",").filter((part) => part.trim() !== "");
}

/** What is said of a text that is none of its kind. */
export const EXPECTED = { boolean: "0 or 1 is expected", integer: "an integer is expected" } as const;

/** What is wrong with a value, in our own words: the schema library's words change with its version. */
export function faultText(issue: z.core.$ZodIssue): string {
  const place = typeof issue.path[1] === "number" ? `value ${issue.path[1] + 1}: ` : "";
  return place + ruleText(issue);
}

function ruleText(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "too_big":
      return `at most ${limitText(issue.origin, issue.maximum)}`;
    case "too_small":
      return `at least ${limitText(issue.origin, issue.minimum)}`;
    case "invalid_value":
      return `${orText(issue.values.map(String))} is expected`;
    case "invalid_format":
    case "custom":
      // Formats and checks are ours, each with its text.
      return issue.message;
    case "invalid_type":
      return `${TYPE_TEXTS[issue.expected] ?? "another kind of value"} is expected`;
    default:
      return "it does not fit";
  }
}

/** By the type that the schema expects. */
const TYPE_TEXTS: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "0 or 1",
  file: "a file",
  int: "an integer",
  number: "a number",
  string: "a text",
};

/** Units of limits, by what is limited; numbers have none. */
const LIMIT_UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ["character", "characters"],
  array: ["value", "values"],
  file: ["byte", "bytes"],
};

function limitText(origin: string, limit: number | bigint): string {
  const unit = LIMIT_UNITS[origin];
  return unit === undefined ? String(limit) : `${limit} ${limit === 1 ? unit[0] : unit[1]}`;
}

function orText(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
