/** What sources need of the machine. */
import type { Ports } from "../ports.ts";

/** See the module. */
export type SourcePorts = Pick<
  Ports,
  "clock" | "files" | "httpClient" | "log" | "network" | "processes" | "runtime" | "udp"
>;
