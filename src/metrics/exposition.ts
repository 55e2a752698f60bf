/** The text format that Prometheus scrapes (version 0.0.4): families of samples in, text out. */

/** Content type of the text. */
export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Labels of one series, in the order in which they are written. Values are escaped; names are constants of the program. */
export type Labels = Readonly<Record<string, string>>;

/** One line: a value with its labels. */
export interface MetricSample {
  readonly labels: Labels;
  readonly value: number;
  /** `_bucket`, `_sum` or `_count` of a histogram; default none. */
  readonly suffix?: string;
}

/** All series of one name. */
export interface MetricFamily {
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  samples(): Iterable<MetricSample>;
}

/** A family whose value is read when it is scraped. */
export function gauge(name: string, help: string, read: () => number | readonly MetricSample[]): MetricFamily {
  return { name, help, type: "gauge", samples: () => samplesOf(read()) };
}

/** As `gauge`, for a figure that only grows; `name` ends in `_total`. */
export function countedElsewhere(
  name: string,
  help: string,
  read: () => number | readonly MetricSample[],
): MetricFamily {
  return { name, help, type: "counter", samples: () => samplesOf(read()) };
}

function samplesOf(read: number | readonly MetricSample[]): readonly MetricSample[] {
  return typeof read === "number" ? [{ labels: {}, value: read }] : read;
}

/** The text of all families. */
export function exposition(families: readonly MetricFamily[]): string {
  let text = "";
  for (const family of families) {
    const { name, help, type } = family;
    text += `# HELP ${name} ${help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}\n# TYPE ${name} ${type}\n`;
    for (const { labels, value, suffix = "" } of family.samples()) {
      text += `${name}${suffix}${labelText(labels)} ${numberText(value)}\n`;
    }
  }
  return text;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replace(/[\\"\n]/g, (sign) => sign === "\n" ? "\\n" : `\\${sign}`);
}

function numberText(value: number): string {
  return value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : String(value);
}
