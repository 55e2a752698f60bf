/**
 * Runs one broadcast behind emulated up-links in a process of its own: `main.ts SPEC`, where SPEC is a `LiveWanSpec` as
 * JSON. Prints the result as JSON in the last line; what begins, and each viewer, on standard error.
 */
import process from "node:process";
import { runLiveWan } from "./run.ts";
import { stopSignal } from "./stop-signal.ts";
import { viewerLine } from "./summary.ts";

try {
  const result = await runLiveWan(JSON.parse(process.argv[2]!), { log: console.error, signal: stopSignal() });
  for (const viewer of result.viewers) console.error(viewerLine(viewer));
  const { summary, carried } = result;
  console.log(JSON.stringify({ summary, carried }));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
