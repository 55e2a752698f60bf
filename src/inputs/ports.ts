/** What sources need from the machine. */
import type { Ports } from "../ports.ts";

/** The ports that sources use. */
export type SourcePorts = Pick<
  Ports,
  "clock" | "files" | "httpClient" | "log" | "network" | "processes" | "runtime" | "udp"
>;
