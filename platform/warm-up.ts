/**
 * The server's first requests to itself, made while nobody waits: the runtime loads its HTTP client and compiles the code
 * that a request runs through. Without them, that took 20 ms of the first start of a stream.
 */
import type { Clock } from "../src/ports.ts";

/** Deadline for all requests together, ms. */
const TIMEOUT_MS = 5_000;

/** Asks `baseUrl` twice and ignores the answers. Never rejects: what fails here will fail again, visibly, for a user. */
export async function warmUp(baseUrl: string, clock: Clock): Promise<void> {
  const late = new AbortController();
  const timer = clock.setTimeout(() => late.abort(), TIMEOUT_MS);
  const ask = async (path: string, init: RequestInit) => {
    const response = await fetch(`${baseUrl}${path}`, { ...init, signal: late.signal });
    await response.arrayBuffer();
  };
  try {
    await ask("/webui/api/service?method=get_version", {});
    // Names no stream, so it runs the whole way to the error response.
    await ask("/engine/getstream?format=json", { method: "POST", body: "d" });
  } catch {
    // Ignored, as said above.
  } finally {
    timer.cancel();
  }
}
