/** The ports on Deno. */
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { assemblePorts } from "../shared/ports.ts";
import { denoHttp } from "./http.ts";
import { denoTcp } from "./tcp.ts";

/** Everything the engine needs of the machine, on Deno. */
export function createPorts(options: PlatformOptions = {}): Ports {
  return assemblePorts({ name: "deno", version: Deno.version.deno, tcp: denoTcp, http: denoHttp }, options);
}
