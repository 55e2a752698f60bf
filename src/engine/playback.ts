/** The sessions of an engine. */
import type { TransportCache } from "../content/transport-cache.ts";
import { ForeignPrograms } from "../media/foreign/programs.ts";
import { FfmpegEncoder } from "../media/transcode/ffmpeg.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { CushionSetting } from "../playback/cushion.ts";
import { SessionRecords } from "../playback/session-records.ts";
import { Sessions } from "../playback/sessions.ts";
import { isLive } from "../metainfo/live.ts";
import type { ContentParts } from "./content.ts";
import type { Ground } from "./ground.ts";
import { createPublisher } from "./publisher.ts";
import { sessionObserver } from "./session-observer.ts";
import { createWindowMaker } from "./storage.ts";
import type { SwarmParts } from "./swarms.ts";

/** Makes the sessions, and loads the records of those of the last run. */
export async function openSessions(
  { ports, options, stateDir, startTimeoutMs, closing }: Ground,
  { discovery, manager, broadcasts }: SwarmParts,
  { resolver, channels }: ContentParts,
  transportCache: TransportCache,
  metrics: Metrics,
  cushion: CushionSetting,
): Promise<Sessions> {
  const { clock, log, files, processes } = ports;
  const publisher = createPublisher(discovery, clock, log);
  const records = await SessionRecords.load({ files, stateDir, clock, log });
  closing.push(() => publisher.close(), () => records.close());
  const sessions = new Sessions({
    records,
    clock,
    log,
    swarms: manager,
    live: broadcasts,
    channels,
    liveWindow: await createWindowMaker(ports, options),
    resolver,
    startTimeoutMs,
    cushion,
    audioEncoder: new FfmpegEncoder(processes, clock),
    foreignReader: new ForeignPrograms(processes, ports.http, clock, log),
    audioTarget: options.audioTarget ?? "aac",
    observer: sessionObserver(metrics, log),
    onMetadata: (metainfo) => {
      void transportCache.keep(metainfo);
      // `RecordRefresh` keeps the records of watched broadcasts in the DHT.
      if (!isLive(metainfo)) publisher.publish(metainfo);
    },
  });
  channels.watchedBy(() => sessions.list());
  closing.push(() => sessions.close());
  return sessions;
}
