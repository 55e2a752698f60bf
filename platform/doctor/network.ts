/** Checks of the network: ports, whether an engine runs already, DHT and trackers, and how others see this machine. */
import type { Config } from "../../src/config.ts";
import { isPublicHost } from "../../src/discovery/addresses.ts";
import { DHT_ROUTERS } from "../../src/discovery/dht-routers.ts";
import { createDiscovery } from "../../src/discovery/discovery.ts";
import { NetworkSurroundings } from "../../src/discovery/nearness.ts";
import type { Discovery, DiscoverySession, DiscoverySourceStatus } from "../../src/discovery/types.ts";
import { describePinholes, Pinholes } from "../../src/portmap/pinholes.ts";
import { describeMapping, PortMapper } from "../../src/portmap/port-mapper.ts";
import type { Ports, SocketAddress } from "../../src/ports.ts";
import { VERSION } from "../../src/version.ts";
import { createPeerId } from "../../src/wire/peer-id.ts";
import { formatAddress } from "../shared/os-error.ts";
import { type Finding, ok, trouble, warning } from "./finding.ts";

/** Time between two checks of what has arrived, ms. */
const LOOK_EVERY_MS = 100;
/** Deadline for an engine on this machine to report its version, ms. */
const VERSION_TIMEOUT_MS = 2000;

/** Base URL of the engine that is running with this configuration; null when none is. */
export async function runningEngine(
  { fetch }: Pick<Ports, "fetch">,
  { httpHost, httpPort, bindAll }: Pick<Config, "httpHost" | "httpPort" | "bindAll">,
  signal: AbortSignal,
): Promise<string | null> {
  if (httpPort === 0) return null;
  const host = bindAll || httpHost === "0.0.0.0" || httpHost === "::" ? "127.0.0.1" : httpHost;
  const base = `http://${formatAddress({ host, port: httpPort })}`;
  try {
    const late = AbortSignal.any([signal, AbortSignal.timeout(VERSION_TIMEOUT_MS)]);
    const answer = await fetch(`${base}/webui/api/service?method=get_version`, { signal: late });
    const { result } = await answer.json() as { result?: { version?: unknown } };
    return typeof result?.version === "string" ? base : null;
  } catch {
    return null;
  }
}

/** Whether the HTTP port is free, or the engine that uses it works. */
export async function checkHttp(
  { tcp, fetch }: Pick<Ports, "tcp" | "fetch">,
  { httpHost, httpPort, bindAll }: Pick<Config, "httpHost" | "httpPort" | "bindAll">,
  running: string | null,
  signal: AbortSignal,
): Promise<Finding> {
  if (running !== null) {
    try {
      const answer = await fetch(`${running}/readyz`, { signal });
      const said = (await answer.text()).trim();
      const found = `an engine runs at ${running}: ${said}`;
      return answer.ok ? ok("HTTP port", found) : trouble("HTTP port", found, "read its log, then restart it");
    } catch (error) {
      return trouble("HTTP port", `the engine at ${running} does not respond: ${error}`, "stop it, and start it again");
    }
  }
  const host = bindAll ? "0.0.0.0" : httpHost;
  const taken = await whyTaken(() => tcp.listen({ host, port: httpPort }, (connection) => connection.abort()));
  return taken === null
    ? ok("HTTP port", httpPort === 0 ? "any free one" : `${httpPort} is free`)
    : trouble("HTTP port", taken, "end the program that uses it, or choose another with --http-port");
}

/** Whether the peer port `host:port` can be opened, for TCP and for UDP. */
export async function checkPeerPort(
  { tcp, udp }: Pick<Ports, "tcp" | "udp">,
  { host, port }: SocketAddress,
  running: string | null,
): Promise<Finding> {
  if (running !== null) return ok("peer port", `${port} is used by the running engine`);
  const remedy = "end the program that uses it, or choose another with --peer-port";
  const taken = await whyTaken(() => tcp.listen({ host, port }, (connection) => connection.abort()));
  if (taken !== null) return trouble("peer port", taken, remedy);
  const udpTaken = await whyTaken(() => udp.bind({ host, port }));
  return udpTaken === null
    ? ok("peer port", port === 0 ? "any free one" : `${port} is free, TCP and UDP`)
    : warning("peer port", `${udpTaken} (UDP): no DHT`, remedy);
}

/** Why a port cannot be opened; null when it can. */
async function whyTaken(open: () => Promise<{ close(): unknown }>): Promise<string | null> {
  try {
    await (await open()).close();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Whether peers can be found, through a proxy if `ports` are such, and how others see us. Resolves when all sources have answered or the signal fires. */
export async function checkDiscovery(
  ports: Ports,
  config: Pick<Config, "dht" | "dhtBootstrap" | "trackers">,
  { host, port }: SocketAddress,
  signal: AbortSignal,
  isProxied: boolean,
): Promise<readonly Finding[]> {
  const surroundings = new NetworkSurroundings(ports.network, () => ports.clock.monotonic());
  const routers = config.dhtBootstrap.length > 0 ? config.dhtBootstrap : DHT_ROUTERS;
  const discovery = await createDiscovery({ ...ports, log: SILENT }, {
    peerId: createPeerId(),
    // Port 0 announces none: no engine is running that could accept peers.
    peerPort: () => 0,
    trackers: config.trackers,
    dht: { surroundings, enabled: config.dht, bootstrap: routers, statePath: null, host, port: 0 },
    lsd: { enabled: false },
    userAgent: `millrace/${VERSION}`,
  });
  const session = discovery.start({
    // The infohash of no existing torrent.
    infohash: crypto.getRandomValues(new Uint8Array(20)),
    trackers: [],
    isPrivate: false,
    onPeer: () => {},
    state: () => ({ uploadedBytes: 0, downloadedBytes: 0, leftBytes: 1 }),
  });
  try {
    const isDone = () =>
      (!config.dht || discovery.dhtPort === null || discovery.dhtAnswers?.() === true) &&
      trackersOf(session).every((tracker) => isSettled(tracker));
    while (!isDone() && !signal.aborted) await pause(ports, signal);
    return [
      dhtFinding(config.dht, discovery, routers, isProxied),
      ...trackerFindings(trackersOf(session)),
      isProxied
        ? ok("reachability", "peers cannot connect: the proxy lets nobody in; the engine connects to them")
        : reachFinding(ports, surroundings, port),
    ];
  } finally {
    await session.close();
    await discovery.close();
  }
}

const SILENT: Ports["log"] = { log() {}, child: () => SILENT };

function pause({ clock }: Pick<Ports, "clock">, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      timer.cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.setTimeout(done, LOOK_EVERY_MS);
    signal.addEventListener("abort", done, { once: true });
  });
}

function trackersOf(session: DiscoverySession): readonly DiscoverySourceStatus[] {
  return session.status().filter(({ kind }) => kind === "tracker");
}

/** Whether the source answered or failed. A source that was not asked yet is due at once. */
function isSettled({ lastError, nextAnnounceMs, peers }: DiscoverySourceStatus): boolean {
  return lastError !== null || (nextAnnounceMs ?? 0) > 0 || peers > 0;
}

function dhtFinding(isOn: boolean, discovery: Discovery, routers: readonly string[], isProxied: boolean): Finding {
  if (!isOn) {
    return warning("DHT", "it is off (--no-dht): ids and magnets without trackers find no peers", "leave out --no-dht");
  }
  if (isProxied && discovery.dhtAnswers?.() !== true) {
    return warning("DHT", "no node answers through the proxy", "use trackers over HTTP, or a proxy that passes UDP on");
  }
  if (discovery.dhtPort === null) return trouble("DHT", "it cannot open a UDP port", "check --peer-host");
  return discovery.dhtAnswers?.() === true ? ok("DHT", "nodes answer") : trouble(
    "DHT",
    `no node answers (asked ${routers.join(", ")})`,
    "allow outgoing UDP in the firewall; where that is not possible, use --tracker",
  );
}

function trackerFindings(trackers: readonly DiscoverySourceStatus[]): Finding[] {
  if (trackers.length === 0) return [ok("trackers", "none of your own: torrents bring their own")];
  return trackers.map((tracker) => {
    if (!isSettled(tracker)) {
      return warning("tracker", `${tracker.name} does not answer`, "check its address, or leave it out");
    }
    return tracker.lastError === null
      ? ok("tracker", `${tracker.name} answers`)
      : warning("tracker", `${tracker.name}: ${tracker.lastError}`, "check its address, or leave it out");
  });
}

/** Whether the router can let peers in. The mapping is removed at once. */
export async function checkPortMapping(
  ports: Ports,
  { portMapping, peerPort: port }: Pick<Config, "portMapping" | "peerPort">,
  running: string | null,
  isProxied: boolean,
): Promise<Finding> {
  const check = "port mapping";
  if (isProxied) return ok(check, "it is off: all goes by --proxy or --interface");
  if (!portMapping) return ok(check, "it is off (--no-port-mapping)");
  if (running !== null) return ok(check, "the running engine has asked the router; its log shows the result");
  if (port === 0) return ok(check, "the port is chosen at each start");
  const mapper = new PortMapper({ ...ports, log: SILENT }, [{ protocol: "tcp", port }]);
  await mapper.start();
  const { state } = mapper;
  await mapper.close();
  const found = describeMapping(state);
  if (state.kind === "unneeded" || (state.kind === "mapped" && state.isPublic)) return ok(check, found);
  const remedy = state.kind === "mapped"
    ? "you can still exchange data with viewers that you connect to; ask the provider for a public address"
    : `switch on UPnP, NAT-PMP or PCP in the router, or forward TCP and UDP port ${port} to this machine`;
  return warning(check, found, remedy);
}

/** Whether the router's IPv6 firewall can let peers in to `peerAddress`; null when it need not. It is closed again at once. */
export async function checkPinholes(ports: Ports, { host, port }: SocketAddress): Promise<Finding | null> {
  const pinholes = new Pinholes({ ...ports, log: SILENT }, [{ protocol: "tcp", port }], host === "::" ? null : host);
  await pinholes.start();
  const { state } = pinholes;
  await pinholes.close();
  const found = describePinholes(state);
  if (state.kind === "unneeded") return null;
  const remedy = `switch on PCP or UPnP in the router, or let TCP and UDP port ${port} in to this machine`;
  return state.kind === "open" ? ok("IPv6 firewall", found) : warning("IPv6 firewall", found, remedy);
}

/** No outside host is asked to connect to us, so all we can find out is whether a router stands in between. */
function reachFinding(
  { network }: Pick<Ports, "network">,
  { external }: NetworkSurroundings,
  peerPort: number,
): Finding {
  const own = network.interfaces();
  const forward =
    `unless the router maps it (see "port mapping"), forward TCP and UDP port ${peerPort} to this machine, so that peers can connect`;
  const [seen] = external.believed;
  if (seen !== undefined) {
    return own.some(({ host }) => host === seen)
      ? ok(
        "reachability",
        `others see this machine as ${seen}, its own address; let port ${peerPort} in through a firewall`,
      )
      : warning("reachability", `others see this machine as ${seen}, a router's address`, forward);
  }
  const isPublic = own.some(({ host }) => isPublicHost(host));
  return isPublic
    ? ok("reachability", "this machine has a public address")
    : warning("reachability", "this machine has private addresses only", forward);
}
