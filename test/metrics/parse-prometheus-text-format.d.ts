/** What the parser returns; it has no types of its own. */
declare module "parse-prometheus-text-format" {
  interface Metric {
    readonly labels?: Readonly<Record<string, string>>;
    readonly value?: string;
    readonly buckets?: Readonly<Record<string, string>>;
    readonly count?: string;
    readonly sum?: string;
  }
  interface MetricFamily {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly Metric[];
  }
  /** Throws for a line that is not of the format. */
  export default function parse(text: string): readonly MetricFamily[];
}
