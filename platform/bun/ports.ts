/** The ports on Bun. */
/// <reference path="./bun-api.d.ts" />
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { createHttpPort } from "../shared/http-server.ts";
import { assemblePorts } from "../shared/ports.ts";
import { endedSockets } from "./ended-sockets.ts";
import { bunTcp } from "./tcp.ts";

const http = createHttpPort({ ended: endedSockets });

/** Everything the engine needs of the machine, on Bun. */
export function createPorts(options: PlatformOptions = {}): Ports {
  return assemblePorts({ name: "bun", version: Bun.version, tcp: bunTcp, http }, options);
}
