/** The ports on Node. */
import process from "node:process";
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { assemblePorts } from "../shared/ports.ts";
import { nodeTcp } from "./tcp.ts";

export type { PlatformOptions } from "../shared/options.ts";

// The database's package makes a report of the process to find out about its C library. Node would look up the names of all
// connected machines for it, one after the other, while everything waits: 10 s and more for each where no name server answers.
const { report } = process as { report?: { excludeNetwork?: boolean } };
if (report !== undefined) report.excludeNetwork = true;

/** Everything the engine needs of the machine, on Node. */
export function createPorts(options: PlatformOptions = {}): Ports {
  return assemblePorts({ name: "node", version: process.versions.node, tcp: nodeTcp, http: {} }, options);
}
