/** The ports on Node. */
import process from "node:process";
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { assemblePorts } from "../shared/ports.ts";
import { nodeHttp } from "./http.ts";
import { nodeTcp } from "./tcp.ts";

/** Everything the engine needs of the machine, on Node. */
export function createPorts(options: PlatformOptions = {}): Ports {
  return assemblePorts({ name: "node", version: process.versions.node, tcp: nodeTcp, http: nodeHttp }, options);
}
