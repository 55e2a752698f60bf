/** `doctor`: checks everything the engine needs, and says what is wrong and what to do. */
import type { Config } from "../../src/config.ts";
import { peerHostFor } from "../../src/discovery/peer-host.ts";
import type { Ports } from "../../src/ports.ts";
import { chooseDirectories } from "../directories.ts";
import { print } from "../host.ts";
import { type Finding, findingText, ok, trouble } from "./finding.ts";
import { checkCache, checkDatabase, checkDatagrams, checkFfmpeg, checkStateDirectory } from "./machine.ts";
import { boundPorts } from "../../src/egress/bound-ports.ts";
import type { InterfaceWatch } from "../../src/egress/interface-watch.ts";
import { createEgress } from "../../src/engine/egress.ts";
import { checkProxy } from "./proxy.ts";
import { checkDiscovery, checkHttp, checkPeerPort, checkPinholes, checkPortMapping, runningEngine } from "./network.ts";

/** Exit code when something keeps the engine from its work. */
export const EXIT_TROUBLE = 3;

/** Deadline for the network, ms: DHT nodes and trackers that answer at all do so within seconds, and the user is waiting. */
const NETWORK_TIMEOUT_MS = 15_000;

/** Runs `doctor` and returns the exit code: 0, or `EXIT_TROUBLE`. */
export async function runDoctor(config: Config, ports: Ports): Promise<number> {
  let hasTrouble = false;
  for await (const finding of examine(config, ports, AbortSignal.timeout(NETWORK_TIMEOUT_MS))) {
    hasTrouble ||= finding.state === "trouble";
    print(config.json ? JSON.stringify(finding) : findingText(finding));
  }
  return hasTrouble ? EXIT_TROUBLE : 0;
}

/** Yields all findings in the order in which they are printed, each as soon as it is known. `signal` ends waiting for the network. */
export async function* examine(config: Config, ports: Ports, signal: AbortSignal): AsyncGenerator<Finding> {
  const directories = chooseDirectories(config);
  const { swarmPorts, proxied, watch } = createEgress({ ...ports, log: SILENT }, config);
  const running = await runningEngine(ports, config, signal);
  const proxy = checkProxy(boundTo(ports, watch), proxied, signal);
  const isFree = proxied === null && watch === null;
  const host = await peerHostFor({ named: config.peerHost, isFree }, ports.udp);
  const peerAddress = { host, port: config.peerPort };
  // This takes longest: it begins first and is reported last.
  const discovery = checkDiscovery(swarmPorts, config, peerAddress, signal, proxied !== null);
  discovery.catch(() => {});
  const mapping = checkPortMapping(ports, config, running, !isFree);
  mapping.catch(() => {});
  const asksFirewall = isFree && config.portMapping && running === null && config.peerPort > 0 && host.includes(":");
  const pinholes = asksFirewall ? checkPinholes(ports, peerAddress) : Promise.resolve(null);
  pinholes.catch(() => {});
  yield await checkHttp(ports, config, running, signal);
  yield await checkPeerPort(ports, peerAddress, running);
  if (watch !== null) yield interfaceFinding(watch);
  const foundProxy = await proxy;
  if (foundProxy !== null) yield foundProxy;
  yield await checkStateDirectory(ports, directories);
  yield await checkCache(ports, config, directories);
  yield await checkDatabase(ports, config, directories);
  yield await checkFfmpeg(ports, signal);
  const datagrams = await checkDatagrams(ports);
  if (datagrams !== null) yield datagrams;
  yield* await discovery;
  yield await mapping;
  const firewall = await pinholes;
  if (firewall !== null) yield firewall;
  watch?.close();
}

function boundTo(ports: Ports, watch: InterfaceWatch | null): Ports {
  return watch === null ? ports : boundPorts(ports, watch, "nothing");
}

function interfaceFinding(watch: InterfaceWatch): Finding {
  const { name, trouble: away } = watch;
  if (away !== null) return trouble("interface", away, "bring it up, or correct --interface");
  const { ipv4, ipv6 } = watch.addresses();
  return ok("interface", `${name} has ${[ipv4, ipv6].filter((address) => address !== null).join(" and ")}`);
}

const SILENT: Ports["log"] = { log() {}, child: () => SILENT };
