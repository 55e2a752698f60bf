/** Detects the runtime and loads its platform. */
import type { Ports } from "../src/ports.ts";
import type { PlatformOptions } from "./shared/options.ts";

/** Runtimes with a platform of their own. */
export type RuntimeName = "deno" | "node" | "bun";

/** The runtime that runs this code. */
export function runtimeName(): RuntimeName {
  if ("Bun" in globalThis) return "bun";
  return "Deno" in globalThis ? "deno" : "node";
}

/** The ports of the current runtime. */
export async function loadPorts(options: PlatformOptions = {}): Promise<Ports> {
  switch (runtimeName()) {
    case "bun":
      return (await import("./bun/ports.ts")).createPorts(options);
    case "deno":
      return (await import("./deno/ports.ts")).createPorts(options);
    case "node":
      return (await import("./node/ports.ts")).createPorts(options);
  }
}
