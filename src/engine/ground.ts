/** What every part of an engine is made with. */
import { OwnRequests } from "../content/own-requests.ts";
import { NetworkSurroundings } from "../discovery/nearness.ts";
import type { Ports } from "../ports.ts";
import { CloseStack } from "./close-stack.ts";
import { createEgress, type Egress } from "./egress.ts";
import type { EngineOptions } from "./options.ts";
import { RecentLog } from "./recent-log.ts";

const DEFAULT_START_TIMEOUT_MS = 60_000;

/** The machine's ports, with a log that `recentLog` reads too; requests that they send bear our mark. */
export type GroundPorts = Ports & { readonly surroundings: NetworkSurroundings };

/** Made before all parts. */
export interface Ground extends Egress<GroundPorts> {
  readonly options: EngineOptions;
  /** As in the options; null: nothing is kept. */
  readonly stateDir: string | null;
  /** Time after which a stream that has not started fails, ms. */
  readonly startTimeoutMs: number;
  /** Takes each part that has to be closed. */
  readonly closing: CloseStack;
  readonly recentLog: RecentLog;
  /** Recognises the requests that this engine sends. */
  readonly ownRequests: OwnRequests;
}

/** Makes the ground of one engine. Opens nothing. Throws `config` for a malformed proxy. */
export function createGround(machine: Ports, options: EngineOptions): Ground {
  const recentLog = new RecentLog(machine.clock);
  const log = recentLog.over(machine.log);
  const ownRequests = new OwnRequests();
  const surroundings = new NetworkSurroundings(machine.network, () => machine.clock.monotonic());
  const egress = createEgress({ ...ownRequests.marked({ ...machine, log }), surroundings }, options);
  const closing = new CloseStack(log);
  closing.push(() => egress.watch?.close());
  return {
    ...egress,
    options,
    stateDir: options.stateDir ?? null,
    startTimeoutMs: options.startTimeoutMs ?? DEFAULT_START_TIMEOUT_MS,
    closing,
    recentLog,
    ownRequests,
  };
}
