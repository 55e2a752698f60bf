/** Has the router pass the peer port on to this engine, and reports the port that it gives to the other parts. */
import { nearnessOf } from "../discovery/nearness.ts";
import type { Discovery } from "../discovery/types.ts";
import { PortMapper, type PortMapperPorts } from "../portmap/port-mapper.ts";
import { Pinholes } from "../portmap/pinholes.ts";
import type { PortToMap } from "../portmap/gateway.ts";
import type { TorrentSwarmManager } from "../swarm/manager.ts";

/** The parts concerned. */
export interface MappedParts {
  readonly manager: Pick<TorrentSwarmManager, "peerAddress" | "setExternalPort" | "context">;
  readonly discovery: Pick<Discovery, "dhtPort">;
}

/** What asks the router; `close` gives the ports back. */
export interface PortMappings {
  close(): Promise<void>;
}

/** Starts to map the peer port; null when no stranger could connect to it anyway: it is closed, or listens on loopback. */
export function mapPeerPort(ports: PortMapperPorts, { manager, discovery }: MappedParts): PortMappings | null {
  const { peerAddress } = manager;
  if (peerAddress === null || isLoopback(peerAddress.host)) return null;
  const { host, port } = peerAddress;
  const wanted: PortToMap[] = [{ protocol: "tcp", port }];
  if (discovery.dhtPort !== null) wanted.push({ protocol: "udp", port: discovery.dhtPort });
  const mapper = new PortMapper(ports, wanted, (state) => {
    manager.setExternalPort(state.kind === "mapped" ? state.externalPort : null);
    manager.context.reachability.changed();
  });
  void mapper.start();
  const pinholes = host.includes(":") ? new Pinholes(ports, wanted, host === "::" ? null : host) : null;
  void pinholes?.start();
  return { close: async () => void await Promise.all([mapper.close(), pinholes?.close()]) };
}

function isLoopback(host: string): boolean {
  return host !== "0.0.0.0" && host !== "::" && nearnessOf(host, []) === "own";
}
