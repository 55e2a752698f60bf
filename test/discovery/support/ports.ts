/** The platform's ports for discovery tests, without logs; tests can replace parts. */
import { loadPorts } from "../../../platform/detect.ts";
import type { DiscoveryPorts } from "../../../src/discovery/discovery.ts";
import type { Logger, UdpPort } from "../../../src/ports.ts";

const platform = await loadPorts();
const silent: Logger = { log() {}, child: () => silent };

/** The platform's UDP. */
export const udp: UdpPort = platform.udp;

/** Ports with `parts` in place of the real ones. */
export function testPorts(parts: Partial<DiscoveryPorts> = {}): DiscoveryPorts {
  return { ...platform, log: silent, ...parts };
}

/** Resolves when `condition` holds; rejects after `timeoutMs`. Checks every 5 ms, for states that no event announces. */
export async function until(condition: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
