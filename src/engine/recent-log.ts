/** The newest warnings and errors, which the page shows to people without access to a log. */
import { describeError } from "../errors.ts";
import type { Clock, Logger, LogLevel } from "../ports.ts";

/** Lines kept: recent trouble, not a history. */
export const MAX_LOG_LINES = 100;
/** Longest text kept per line, characters: it may contain messages of peers and servers. */
export const MAX_LINE_CHARS = 500;

/** One line. */
export interface LogLine {
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly level: "error" | "warn";
  readonly message: string;
  /** Its fields as `key=value`. */
  readonly detail: string;
}

/** Keeps the severe lines that pass through its loggers. */
export class RecentLog {
  readonly #clock: Clock;
  readonly #lines: LogLine[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The kept lines, newest first. */
  lines(): readonly LogLine[] {
    return this.#lines.toReversed();
  }

  /** A logger that passes everything on to `log` and keeps severe lines. */
  over(log: Logger, bound: Readonly<Record<string, unknown>> = {}): Logger {
    return {
      log: (level, message, fields) => {
        log.log(level, message, fields);
        if (isSevere(level)) this.#keep(level, message, { ...bound, ...fields });
      },
      child: (fields) => this.over(log.child(fields), { ...bound, ...fields }),
    };
  }

  #keep(level: LogLine["level"], message: string, fields: Readonly<Record<string, unknown>>): void {
    const detail = Object.entries(fields).map(([key, value]) => `${key}=${valueText(value)}`).join(" ");
    this.#lines.push({ atMs: this.#clock.now(), level, message: shortened(message), detail: shortened(detail) });
    if (this.#lines.length > MAX_LOG_LINES) this.#lines.shift();
  }
}

function isSevere(level: LogLevel): level is LogLine["level"] {
  return level === "error" || level === "warn";
}

function valueText(value: unknown): string {
  if (value instanceof Error) return describeError(value);
  return typeof value === "object" ? JSON.stringify(value) ?? "" : String(value);
}

function shortened(text: string): string {
  return text.length <= MAX_LINE_CHARS ? text : `${text.slice(0, MAX_LINE_CHARS - 1)}…`;
}
