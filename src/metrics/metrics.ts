/** Events that the engine counts as they happen. Figures that a part keeps itself are read at the scrape: `engine-figures.ts`. */
import type { MetricFamily } from "./exposition.ts";
import { Counter, Histogram } from "./instruments.ts";

/** Upper ends of the buckets for responses, s: from memory, from disk, from peers. */
const ANSWER_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Upper ends of the buckets for starts, s: a viewer notices one second and leaves at ten; the default start timeout is sixty. */
const START_BOUNDS_S = [0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60, 120];

/** Counters and histograms of one engine. */
export class Metrics {
  /** HTTP requests; `route` is one of the engine's patterns, never a path. */
  readonly requests = new Counter({
    name: "millrace_http_requests_total",
    help: "HTTP requests by route, method and status.",
    labels: ["route", "method", "status"],
  });
  /** Seconds until the head of the response. */
  readonly requestSeconds = new Histogram({
    name: "millrace_http_request_seconds",
    help: "From a request to the head of its response; bodies last as long as the player reads.",
    labels: ["route"],
    bounds: ANSWER_BOUNDS_S,
  });
  /** Calls of the method API; `method` is a name in the registry. */
  readonly calls = new Counter({
    name: "millrace_api_calls_total",
    help: "Calls of the method API by method and result.",
    labels: ["method", "result"],
  });
  /** Seconds. */
  readonly startSeconds = new Histogram({
    name: "millrace_start_seconds",
    help: "From the request of a start until its output can be read.",
    labels: ["output"],
    bounds: START_BOUNDS_S,
  });
  /** Starts that failed, by error code. */
  readonly startFailures = new Counter({
    name: "millrace_start_failures_total",
    help: "Starts that failed, by the code of the error.",
    labels: ["output", "code"],
  });
  /** Sessions that began to wait, by reason. */
  readonly stalls = new Counter({
    name: "millrace_stalls_total",
    help: "How often playing had to wait, by reason.",
    labels: ["reason"],
  });

  /** All of them. */
  families(): readonly MetricFamily[] {
    return [this.requests, this.requestSeconds, this.calls, this.startSeconds, this.startFailures, this.stalls];
  }
}
