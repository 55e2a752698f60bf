/** Publishes what the engine has learnt. */
import { deadline } from "../bytes/deadline.ts";
import type { Discovery } from "../discovery/types.ts";
import type { Logger, Ports } from "../ports.ts";
import { transportRecordOf } from "../metainfo/content-id.ts";
import type { AnyMetainfo } from "../metainfo/live.ts";

/** Most content ids that an engine puts into the DHT: each costs some dozens of packets. */
const MAX_PUBLISHED = 1000;
/** Time limit for putting one record into the DHT. */
const PUBLISH_TIMEOUT_MS = 30_000;

/** Puts transport records into the DHT, once each, in the background. */
export function createPublisher(discovery: Discovery, clock: Ports["clock"], log: Logger) {
  const published = new Set<string>();
  const closing = new AbortController();
  return {
    publish(metainfo: AnyMetainfo): void {
      if (metainfo.isPrivate || published.has(metainfo.infohashHex) || published.size >= MAX_PUBLISHED) return;
      if (discovery.dhtPort === null) return;
      published.add(metainfo.infohashHex);
      const late = deadline(clock, PUBLISH_TIMEOUT_MS, closing.signal);
      discovery.putImmutable(transportRecordOf(metainfo), late.signal)
        .catch((error) => log.log("debug", "a transport record was not stored in the DHT", { error: String(error) }))
        .finally(() => late.cancel());
    },
    close: () => closing.abort(),
  };
}
