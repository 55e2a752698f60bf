/** Assembles a platform's ports from those of the runtime and those that all runtimes share. */
import process from "node:process";
import { faultFields } from "../../src/bytes/guarded-clock.ts";
import type { Ports, RuntimeFacts, RuntimeUsage, TcpPort } from "../../src/ports.ts";
import { createClock } from "./clock.ts";
import { sha1, sha256 } from "./digests.ts";
import { TcpAddressRace } from "./address-race.ts";
import { createFetch } from "./fetch.ts";
import { deviceTls } from "./device-tls.ts";
import { files } from "./files.ts";
import { createHttpClient } from "./http-client.ts";
import { createHttpPort, type HttpPortParts } from "./http-server.ts";
import { localSockets } from "./local-sockets.ts";
import { createLogger } from "./logger.ts";
import { network } from "./network.ts";
import type { PlatformOptions } from "./options.ts";
import { pages } from "./pages.ts";
import { processes } from "./processes.ts";
import { programs } from "./programs.ts";
import { sqlite } from "./sqlite.ts";
import { ed25519 } from "./signatures.ts";
import { createUdpPort, type OpenFastReceiver } from "./udp.ts";

/** What differs between runtimes. */
export interface RuntimeParts {
  readonly name: RuntimeFacts["name"];
  readonly version: string;
  readonly tcp: TcpPort;
  readonly http: Omit<HttpPortParts, "failed">;
  /** Where the runtime's own way to enlarge receive buffers of UDP has no effect, or where it delivers slowly. */
  readonly openFastReceiver?: OpenFastReceiver;
  /** Called with the bytes of each part of an HTTP response that arrived, and of each call of `Ports.spent`. */
  readonly received?: (bytes: number) => void;
}

const PLATFORMS: readonly RuntimeFacts["platform"][] = ["linux", "win32", "android", "darwin"];

/** All ports of this machine on one runtime. */
export function assemblePorts(parts: RuntimeParts, options: PlatformOptions): Ports {
  const { clock, pendingTimers } = createClock((timer) => unref(timer));
  const race = new TcpAddressRace({ tcp: parts.tcp, clock });
  const httpClient = {
    ...createHttpClient(parts.received === undefined ? {} : { received: parts.received }),
    race,
  };
  const log = createLogger({ ...options.log, clock, write: (line) => void process.stderr.write(line) });
  const failed = (error: unknown) => log.log("error", "a fault in a check of the HTTP server", faultFields(error));
  const platform = PLATFORMS.find((name) => name === process.platform) ?? "linux";
  return {
    runtime: { name: parts.name, version: parts.version, platform, usage: () => usage(parts.name, pendingTimers()) },
    sha1,
    sha256,
    ed25519,
    clock,
    tcp: parts.tcp,
    udp: createUdpPort(parts.openFastReceiver),
    files,
    processes,
    programs,
    localSockets,
    deviceTls,
    network,
    http: createHttpPort({ ...parts.http, failed }),
    pages,
    sqlite,
    httpClient,
    fetch: createFetch({ httpClient, network, clock }),
    log,
    ...(parts.received === undefined ? {} : { spent: parts.received }),
  };
}

function usage(runtime: string, timers: number): RuntimeUsage {
  const { rss, heapUsed, external } = process.memoryUsage();
  // Bun counts buffers as part of the heap.
  const heapBytes = runtime === "bun" ? Math.max(0, heapUsed - external) : heapUsed;
  return { residentBytes: rss, heapBytes, externalBytes: external, timers };
}

function unref(timer: unknown): void {
  if (typeof timer === "number") (globalThis as { Deno?: { unrefTimer(id: number): void } }).Deno?.unrefTimer(timer);
  else (timer as { unref?(): void }).unref?.();
}
