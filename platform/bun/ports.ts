/** The ports on Bun. */
/// <reference path="./bun-api.d.ts" />
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { assemblePorts } from "../shared/ports.ts";
import { endedSockets } from "./ended-sockets.ts";
import { OldMemory } from "./old-memory.ts";
import { ReceivedMemory } from "./received-memory.ts";
import { bunTcp } from "./tcp.ts";

export type { PlatformOptions } from "../shared/options.ts";

/** Bytes of HTTP responses between two collections of young objects and looks at the old ones. */
const COLLECT_EVERY_BYTES = 8 * 1024 * 1024;
const old = new OldMemory();
const responses = new ReceivedMemory(
  () => {
    Bun.gc(false);
    old.look();
  },
  undefined,
  COLLECT_EVERY_BYTES,
);

/** Everything the engine needs of the machine, on Bun. */
export function createPorts(options: PlatformOptions = {}): Ports {
  return assemblePorts({
    name: "bun",
    version: Bun.version,
    tcp: bunTcp,
    http: { ended: endedSockets },
    received: (bytes) => responses.add(bytes),
  }, options);
}
