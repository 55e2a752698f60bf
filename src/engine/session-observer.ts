/** Counts and logs how sessions go. */
import { shownId } from "../http/request-log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { SessionObserver } from "../playback/session-base.ts";
import type { Logger } from "../ports.ts";

/** The observer of an engine's sessions. */
export function sessionObserver(metrics: Metrics, log: Logger): SessionObserver {
  return {
    stalled: (id, reason) => {
      metrics.stalls.add({ reason });
      log.log("debug", "a session waits", { session: shownId(id), reason });
    },
    ended: (id, reason) => log.log("debug", "a session ended", { session: shownId(id), reason }),
  };
}
