/** `--help` and README text generated from the option table, so that neither can become outdated. */
import type { Option, OptionTable } from "./parse.ts";
import { variableName } from "./parse.ts";

/** Width of the column of flags in `--help`. */
const FLAG_COLUMN = 30;

/** One line per option. */
export function optionLines(table: OptionTable): string {
  return visible(table).map((option) => {
    const left = `  ${usage(option)}`;
    const gap = left.length < FLAG_COLUMN ? " ".repeat(FLAG_COLUMN - left.length) : `\n${" ".repeat(FLAG_COLUMN)}`;
    const initial = shownDefault(option);
    return `${left}${gap}${option.help}${initial === "" ? "" : ` [${initial}]`}`;
  }).join("\n");
}

/** A Markdown table of flag, variable, default and meaning. */
export function optionMarkdown(table: OptionTable): string {
  const rows = visible(table).map((option) => {
    const initial = shownDefault(option);
    const cells = [
      `\`${usage(option)}\``,
      option.flagOnly ? "" : `\`${variableName(option.flag)}\``,
      initial === "" ? "" : `\`${initial}\``,
      option.help,
    ];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| flag | variable | default | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

/** One option, for manual pages and the completions of shells. */
export interface OptionFacts {
  /** Without the dashes. */
  readonly flag: string;
  /** Name of its value, the words that it may be joined by `|`, or empty when it takes none. */
  readonly placeholder: string;
  readonly help: string;
  /** Its default in words; empty: there is nothing to show. */
  readonly initial: string;
}

/** The options that users see, in the order of `--help`. */
export function optionFacts(table: OptionTable): OptionFacts[] {
  return visible(table).map((option) => ({
    flag: option.flag,
    placeholder: option.kind.placeholder,
    help: option.help,
    initial: shownDefault(option),
  }));
}

function visible(table: OptionTable): Option<unknown>[] {
  return Object.values(table).filter((option) => option.hidden !== true);
}

function usage(option: Option<unknown>): string {
  return `--${option.flag}${option.kind.placeholder === "" ? "" : ` ${option.kind.placeholder}`}`;
}

function shownDefault(option: Option<unknown>): string {
  if (option.shownDefault !== undefined) return option.shownDefault;
  if (option.kind.placeholder === "") return "";
  return option.initial === null ? "" : option.kind.format(option.initial);
}
