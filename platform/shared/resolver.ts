/**
 * Looks names up. The runtimes' own lookup runs in a few threads, and one that a silent server holds up cannot be taken back:
 * a magnet with sixty such names stopped all lookups for minutes. So the servers of the system are asked directly, within
 * bounded places and deadlines; the system's resolver is asked only about names that they do not know.
 */
import dns from "node:dns";
import net from "node:net";
import os from "node:os";
import { withSignal } from "../../src/bytes/deadline.ts";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { ResolveOptions } from "../../src/ports.ts";
import { HostsFile } from "./hosts-file.ts";
import { Places } from "./places.ts";
import { systemLookup } from "./system-lookup.ts";

/** Time for a server's answer before the next server, or the same again, is asked, ms. */
const TRY_MS = 2000;
const TRIES = 2;
/** Deadline of all servers together, and of the system's resolver, ms. */
const LOOKUP_MS = 10_000;
/** How long the addresses of one family are waited for once the others have arrived, ms: RFC 8305 says 50. */
const OTHER_FAMILY_MS = 250;
/** An answer is used again for this long, ms: a connection looks its name up up to three times in a row. */
const KEEP_MS = 10_000;
const KEEP_SILENT_MS = 60_000;
const MAX_KEPT = 1024;
/** While any server has answered for this long, silence is the name's and not the machine's, ms. */
const ALIVE_MS = 60_000;
/** Lookups at once; each takes two sockets. A torrent gets four, all torrents half. */
const SERVER_PLACES = { total: 32, held: 16, perHolder: 4, waiting: 1024 };
/** Programs that ask the system, for names of the local network and for others: neither waits for the other. */
const SYSTEM_PLACES = { total: 4, held: 2, perHolder: 1, waiting: 256 };

/** An IPv6 address of the Internet (2000::/3). */
const IPV6_INTERNET = /^[23][0-9a-f]{3}:/i;

/** Settings of a resolver. */
export interface ResolverOptions {
  /** Servers instead of the system's, `address` or `address:port`. */
  readonly servers?: readonly string[];
  readonly hostsFile?: string;
  /** Instead of the system's own resolver. */
  readonly system?: typeof systemLookup;
  /** Whether this machine has an IPv6 address of the Internet: only then do such addresses come first. */
  readonly hasIpv6?: () => boolean;
}

/** Makes the function that `NetworkPort.resolve` describes. */
export function createResolver(
  options: ResolverOptions = {},
): (host: string, options: ResolveOptions) => Promise<string[]> {
  const hosts = new HostsFile(options.hostsFile);
  const system = options.system ?? systemLookup;
  const hasIpv6 = options.hasIpv6 ?? hasIpv6Address;
  const servers = new Places(SERVER_PLACES);
  const systemPlaces = { near: new Places(SYSTEM_PLACES), far: new Places(SYSTEM_PLACES) };
  const kept = new Map<string, { readonly addresses: string[]; readonly untilMs: number }>();
  let aliveMs = -Infinity;

  const askServers = async (name: string, from: readonly string[], signal: AbortSignal) => {
    const answer = await queryServers(name, { servers: options.servers, hasIpv6, from }, signal);
    if (answer !== "silent") aliveMs = performance.now();
    return answer;
  };
  const askSystem = (name: string, isNear: boolean, holder: string | null, signal: AbortSignal) =>
    systemPlaces[isNear ? "near" : "far"].run(
      holder,
      signal,
      () => within(LOOKUP_MS, signal, (late) => system(name, late)),
    );

  const keep = (name: string, addresses: string[], forMs: number) => {
    kept.delete(name);
    kept.set(name, { addresses, untilMs: performance.now() + forMs });
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
  };

  const find = async (
    name: string,
    holder: string | null,
    from: readonly string[],
    signal: AbortSignal,
  ): Promise<string[]> => {
    const mayAskSystem = from.length === 0;
    const listed = await hosts.find(name);
    if (listed.length > 0) return inOrder(listed, hasIpv6());
    // RFC 6761, section 6.3.
    if (/(?:^|\.)localhost$/i.test(name)) return ["127.0.0.1", "::1"];
    // The servers know no names of mDNS, and complete none with a search domain.
    const isNear = !name.includes(".") || /\.local$/i.test(name);
    if (isNear) return mayAskSystem ? await askSystem(name, true, holder, signal) : [];
    const known = kept.get(name);
    const isKnown = known !== undefined && known.untilMs > performance.now();
    // A torrent does not wait again for a silent name, so that its other names get the places.
    if (isKnown && (known.addresses.length > 0 || holder !== null)) return [...known.addresses];
    const answer = await servers.run(
      holder,
      signal,
      () => within(LOOKUP_MS, signal, (late) => askServers(name, from, late)),
    );
    if (signal.aborted) return [];
    if (typeof answer === "string") {
      const isWorking = performance.now() - aliveMs < ALIVE_MS;
      if (answer === "silent" && isWorking) keep(name, [], KEEP_SILENT_MS);
      // Names in torrents are names of the Internet: no module of the system knows more about them.
      if (!mayAskSystem || (isWorking && (answer === "silent" || holder !== null))) return [];
      return await askSystem(name, false, holder, signal);
    }
    keep(name, answer, KEEP_MS);
    return [...answer];
  };

  return async (host, { signal, holder = null, localAddresses = [] }) => {
    if (signal.aborted) throw abortError(signal);
    if (net.isIP(host) !== 0) return [host];
    const found = await withSignal(find(host.replace(/\.$/, ""), holder, localAddresses, signal), signal);
    if (found.length === 0) throw new MillraceError("not_found", `no address is known for ${host}`);
    return found;
  };
}

/** Asks the servers for both families; "unknown": they know no address; "silent": none answers. Never rejects. */
function queryServers(
  name: string,
  { servers, hasIpv6, from }: {
    readonly servers: readonly string[] | undefined;
    readonly hasIpv6: () => boolean;
    readonly from: readonly string[];
  },
  signal: AbortSignal,
): Promise<string[] | "unknown" | "silent"> {
  // A resolver of its own reads the system's settings as they are now, and can be cancelled alone.
  const resolver = new dns.Resolver({ timeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  if (from.length > 0) askFrom(resolver, from);
  return new Promise((resolve) => {
    const found = new Map<4 | 6, string[]>();
    let open = 2;
    let heard = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = () => {
      if (open < 0) return;
      open = -1;
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolver.cancel();
      const order: (4 | 6)[] = hasIpv6() ? [6, 4] : [4, 6];
      const all = order.flatMap((family) => found.get(family) ?? []);
      resolve(all.length > 0 ? all : heard ? "unknown" : "silent");
    };
    const take = (family: 4 | 6) => (error: unknown, addresses: string[] | undefined) => {
      if (open < 0) return;
      const code = (error as { code?: unknown } | null)?.code;
      heard ||= !error || code === "ENOTFOUND" || code === "ENODATA";
      if (!error && addresses !== undefined) found.set(family, addresses.filter((address) => net.isIP(address) !== 0));
      if (--open === 0) end();
      else if (found.size > 0) timer = setTimeout(end, OTHER_FAMILY_MS);
    };
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) return end();
    resolver.resolve4(name, take(4));
    resolver.resolve6(name, take(6));
  });
}

function askFrom(resolver: dns.Resolver, from: readonly string[]): void {
  try {
    resolver.setLocalAddress(
      from.find((address) => net.isIPv4(address)) ?? "0.0.0.0",
      from.find((address) => net.isIPv6(address)) ?? "::0",
    );
  } catch {
    // Deno has no such choice.
  }
}

/** IPv6 addresses of the Internet first where there is a way to them, else last; the others keep their order. */
function inOrder(addresses: readonly string[], hasIpv6: boolean): string[] {
  const rank = (address: string) => !IPV6_INTERNET.test(address) ? 1 : hasIpv6 ? 0 : 2;
  return [...addresses].sort((a, b) => rank(a) - rank(b));
}

function hasIpv6Address(): boolean {
  return Object.values(os.networkInterfaces()).flat().some((entry) =>
    entry !== undefined && IPV6_INTERNET.test(entry.address)
  );
}

/** Runs `work` with a signal that also fires after `limitMs`; rejects with the reason of `signal` as soon as that fires. */
async function within<T>(limitMs: number, signal: AbortSignal, work: (late: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const abort = () => late.abort();
  const timer = setTimeout(abort, limitMs);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await work(late.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}
