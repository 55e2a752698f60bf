/** The ports on Node. */
import process from "node:process";
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { createHttpPort } from "../shared/http-server.ts";
import { assemblePorts } from "../shared/ports.ts";
import { nodeTcp } from "./tcp.ts";

const http = createHttpPort();

/** Everything the engine needs of the machine, on Node. */
export function createPorts(options: PlatformOptions = {}): Ports {
  return assemblePorts({ name: "node", version: process.versions.node, tcp: nodeTcp, http }, options);
}
