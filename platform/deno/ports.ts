/** The ports on Deno. */
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { watchListener } from "../shared/listener-watch.ts";
import { assemblePorts } from "../shared/ports.ts";
import { openFastReceiver } from "./receive-buffer.ts";
import { denoTcp } from "./tcp.ts";

export type { PlatformOptions } from "../shared/options.ts";

/** Everything the engine needs of the machine, on Deno. */
export function createPorts(options: PlatformOptions = {}): Ports {
  const { deno: version } = Deno.version;
  return assemblePorts(
    { name: "deno", version, tcp: denoTcp, http: { watch: watchListener }, openFastReceiver },
    options,
  );
}
