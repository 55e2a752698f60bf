/** The ports on Bun. */
/// <reference path="./bun-api.d.ts" />
import type { Ports } from "../../src/ports.ts";
import type { PlatformOptions } from "../shared/options.ts";
import { createHttpPort } from "../shared/http-server.ts";
import { assemblePorts } from "../shared/ports.ts";
import { endedSockets } from "./ended-sockets.ts";
import { ReceivedMemory } from "./received-memory.ts";
import { bunTcp } from "./tcp.ts";

export type { PlatformOptions } from "../shared/options.ts";

const http = createHttpPort({ ended: endedSockets });

/**
 * Bytes of HTTP responses between two full collections: those of a source stay for as long as viewers may ask for them, and have
 * grown old by then. Left alone, Bun kept 400 MiB of a stream of 37 Mb/s. Asked for like this it collects beside other work.
 */
const COLLECT_ALL_EVERY_BYTES = 8 * 1024 * 1024;
const responses = new ReceivedMemory(() => Bun.gc(false), undefined, COLLECT_ALL_EVERY_BYTES);

/** Everything the engine needs of the machine, on Bun. */
export function createPorts(options: PlatformOptions = {}): Ports {
  return assemblePorts({
    name: "bun",
    version: Bun.version,
    tcp: bunTcp,
    http,
    received: (bytes) => responses.add(bytes),
  }, options);
}
