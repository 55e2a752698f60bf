/** Formats log lines, as text or JSON. */
import { describeError } from "../../src/errors.ts";
import type { Clock, Logger, LogLevel } from "../../src/ports.ts";

const SEVERITY: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2, debug: 3 };

/** Options of `createLogger`. */
export interface LoggerOptions {
  /** Least severe level written. Default `info`. */
  readonly level?: LogLevel;
  /** Default `text`. */
  readonly format?: "text" | "json";
  /** Takes a finished line with its newline. */
  readonly write: (line: string) => void;
  readonly clock: Clock;
}

/** A logger that writes one line per event; events less severe than `level` cost next to nothing. */
export function createLogger(options: LoggerOptions, bound: Readonly<Record<string, unknown>> = {}): Logger {
  const limit = SEVERITY[options.level ?? "info"];
  const format = options.format === "json" ? jsonLine : textLine;
  return {
    log(level, message, fields) {
      if (SEVERITY[level] > limit) return;
      options.write(
        format(options.clock.now(), level, message, fields === undefined ? bound : { ...bound, ...fields }),
      );
    },
    child: (fields) => createLogger(options, { ...bound, ...fields }),
  };
}

function jsonLine(nowMs: number, level: string, message: string, fields: Readonly<Record<string, unknown>>): string {
  const plain: Record<string, unknown> = { time: new Date(nowMs).toISOString(), level, message };
  for (const [key, value] of Object.entries(fields)) plain[key] = plainValue(value);
  return JSON.stringify(plain) + "\n";
}

function textLine(nowMs: number, level: string, message: string, fields: Readonly<Record<string, unknown>>): string {
  let line = `${new Date(nowMs).toISOString()} ${level.padEnd(5)} ${oneLine(message)}`;
  for (const [key, value] of Object.entries(fields)) {
    const plain = plainValue(value);
    line += ` ${key}=${typeof plain === "string" ? quoted(plain) : oneLine(String(JSON.stringify(plain)))}`;
  }
  return line + "\n";
}

/** Values from outside (peer names, file names) must neither forge a log line nor steer the terminal. */
function oneLine(text: string): string {
  const escaped = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  // deno-lint-ignore no-control-regex
  return text.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, escaped);
}

function quoted(text: string): string {
  return /^[\w.:/@+-]+$/.test(text) ? text : JSON.stringify(oneLine(text));
}

function plainValue(value: unknown): unknown {
  if (value instanceof Error) {
    const code = (value as { code?: unknown }).code;
    return `${typeof code === "string" ? code : value.name}: ${describeError(value)}`;
  }
  if (value instanceof Uint8Array) return `<${value.length} bytes>`;
  if (typeof value === "bigint") return String(value);
  return value ?? null;
}
