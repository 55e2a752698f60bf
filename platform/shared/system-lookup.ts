/** Asks the system's own resolver, which also knows names of mDNS, search domains and other modules. */
import { execFile } from "node:child_process";
import dns from "node:dns";
import net from "node:net";
import process from "node:process";

/** A name that may be an argument of a program. */
const NAME = /^[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_.])?$/i;

/**
 * Addresses of `host`, in the system's order; empty when there are none. On Linux a program of the system does it, and is
 * killed when `signal` fires: a lookup in this process would hold one of the few threads that the runtime has for lookups,
 * for half a minute if a server is silent, and nothing takes it back.
 */
export function systemLookup(host: string, signal: AbortSignal): Promise<string[]> {
  if (process.platform !== "linux" || !NAME.test(host)) return ownLookup(host);
  return new Promise((resolve) => {
    const child = execFile("getent", ["ahosts", host], { maxBuffer: 64 * 1024 }, (error, stdout) => {
      signal.removeEventListener("abort", kill);
      if ((error as { code?: unknown } | null)?.code === "ENOENT" && !signal.aborted) return resolve(ownLookup(host));
      const found = stdout.split("\n").map((line) => line.split(/\s/, 1)[0]!).filter((address) =>
        net.isIP(address) !== 0
      );
      resolve([...new Set(found)]);
    });
    const kill = () => child.kill("SIGKILL");
    signal.addEventListener("abort", kill, { once: true });
  });
}

function ownLookup(host: string): Promise<string[]> {
  return new Promise((resolve) => {
    dns.lookup(host, { all: true, order: "verbatim" }, (error, found) => {
      resolve(error ? [] : found.map(({ address }) => address));
    });
  });
}
