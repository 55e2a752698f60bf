/**
 * A server's first request to itself. It proves that the address answers, and it makes the runtime load its HTTP client
 * and compile the way of a request now, when nobody waits: that took 20 ms of the first start of a stream.
 */
import type { Clock } from "../src/ports.ts";

/** For all requests together, ms. */
const TIMEOUT_MS = 5_000;

/** Asks `baseUrl` twice and forgets the answers. Never rejects: what fails here fails again, visibly, for a user. */
export async function warmUp(baseUrl: string, clock: Clock): Promise<void> {
  const late = new AbortController();
  const timer = clock.setTimeout(() => late.abort(), TIMEOUT_MS);
  const ask = async (path: string, init: RequestInit) => {
    const response = await fetch(`${baseUrl}${path}`, { ...init, signal: late.signal });
    await response.arrayBuffer();
  };
  try {
    await ask("/webui/api/service?method=get_version", {});
    // Names no stream: goes as far as the answer that says so.
    await ask("/engine/getstream?format=json", { method: "POST", body: "d" });
  } catch {
    // See above.
  } finally {
    timer.cancel();
  }
}
