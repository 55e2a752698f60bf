/** The manual page and the completions of shells, made from the table of options so that neither can become outdated. */
import { helpText, shownOptions } from "../../src/config.ts";
import { VERSION } from "../../src/version.ts";

/** Commands with what they complete to; their descriptions stand in `--help`. */
const COMMANDS = [
  "serve",
  "broadcast",
  "relay",
  "user",
  "token",
  "import",
  "check",
  "backup",
  "restore",
  "doctor",
  "verify",
  "demo",
];

/** Values that are names of files or folders. */
const PATHS: ReadonlySet<string> = new Set(["FILE", "DIR", "SOURCE", "PROGRAM"]);

/** Words that a value may be, empty when it is of another kind. Lower case: capitals name a kind of value. */
function wordsOf(placeholder: string): string[] {
  return placeholder.includes("|") ? placeholder.split("|").filter((word) => word === word.toLowerCase()) : [];
}

/** The files by their path below `share`, where systems look for them. */
export function manualFiles(): Record<string, string> {
  return {
    "man/man1/millrace.1": manPage(),
    "bash-completion/completions/millrace": bash(),
    "zsh/site-functions/_millrace": zsh(),
    "fish/vendor_completions.d/millrace.fish": fish(),
  };
}

/** The manual page `millrace(1)`, for `man`. */
export function manPage(): string {
  const [usage] = helpText().split("\nOptions, ");
  const options = shownOptions().map(({ flag, placeholder, help, initial }) =>
    `.TP\n.B ${roff(`--${flag}`)}${placeholder === "" ? "" : ` \\fI${roff(placeholder)}\\fR`}\n` +
    `${roff(help)}${initial === "" ? "" : ` [${roff(initial)}]`}`
  );
  return `.TH MILLRACE 1 "" "millrace ${VERSION}" "User Commands"
.SH NAME
millrace \\- plays torrents and broadcasts as MPEG TS and HLS
.SH SYNOPSIS
.nf
${roff(usage!.slice(usage!.indexOf("Usage: ") + 7).trimEnd().replaceAll(/^ {7}/gm, ""))}
.fi
.SH OPTIONS
Most are also a variable (\\-\\-http\\-port is MILLRACE_HTTP_PORT) and a key of the file that
.B \\-\\-config
names (http\\-port).
${options.join("\n")}
.SH VALUES
Sizes: 512MiB, 2GB. Rates: 2MB/s, 16Mbit/s. Times: 30s, 2m. Lists: repeat the flag or separate by commas.
.SH EXIT STATUS
0 after SIGINT or SIGTERM; 2 for a wrong option, a taken port or a directory that cannot be written; 3 when
.B doctor
finds trouble or
.B verify
a film that is not whole.
`;
}

/** Text in the language of manual pages: hyphens stay hyphens, and no line is taken for a request. */
function roff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^(?=[.'])/gm, "\\&");
}

function bash(): string {
  const options = shownOptions();
  const words = options.flatMap(({ flag, placeholder }) => {
    const values = wordsOf(placeholder);
    return values.length === 0
      ? []
      : [`    --${flag}) COMPREPLY=($(compgen -W "${values.join(" ")}" -- "$2")); return ;;`];
  });
  const paths = options.filter(({ placeholder }) => PATHS.has(placeholder)).map(({ flag }) => `--${flag}`);
  return `# Completion of millrace for bash.
_millrace() {
  case "$3" in
${words.join("\n")}
    ${paths.join("|")}) COMPREPLY=($(compgen -f -- "$2")); return ;;
  esac
  COMPREPLY=($(compgen -W "${[...COMMANDS, ...options.map(({ flag }) => `--${flag}`)].join(" ")}" -- "$2"))
}
complete -o filenames -F _millrace millrace
`;
}

function zsh(): string {
  const quoted = (text: string) => text.replaceAll("'", "'\\''").replace(/[[\]:\\]/g, "\\$&");
  const options = shownOptions().map(({ flag, placeholder, help }) => {
    const words = wordsOf(placeholder);
    const action = words.length > 0 ? `(${words.join(" ")})` : PATHS.has(placeholder) ? "_files" : "";
    const value = placeholder === "" ? "" : `:${quoted(placeholder)}:${action}`;
    const repeats = help.endsWith("repeatable") ? "*" : "";
    return `  '${repeats}--${flag}[${quoted(help)}]${value}'`;
  });
  return `#compdef millrace
_arguments \\
${[`  '1:command:(${COMMANDS.join(" ")})'`, ...options, "  '*:argument:_files'"].join(" \\\n")}
`;
}

function fish(): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, "\\$&")}'`;
  const options = shownOptions().map(({ flag, placeholder, help }) => {
    const words = wordsOf(placeholder);
    const files = PATHS.has(placeholder) ? " -F" : "";
    const value = placeholder === "" ? "" : ` -r${files}${words.length > 0 ? ` -a ${quoted(words.join(" "))}` : ""}`;
    return `complete -c millrace -l ${flag} -d ${quoted(help)}${value}`;
  });
  return `# Completion of millrace for fish.
complete -c millrace -f
complete -c millrace -n __fish_use_subcommand -a ${quoted(COMMANDS.join(" "))}
${options.join("\n")}
`;
}
