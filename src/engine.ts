/** The composition root: opens every part, connects them, and closes them in reverse order. */
import { deadline } from "./bytes/deadline.ts";
import { openAccess } from "./engine/access.ts";
import { Announcements } from "./engine/announcements.ts";
import { createContent, openKeptContent } from "./engine/content.ts";
import { createGround, type Ground } from "./engine/ground.ts";
import { createHttpParts } from "./engine/http-parts.ts";
import { openLibrary } from "./engine/library.ts";
import type { Engine, EngineOptions } from "./engine/options.ts";
import { openSessions } from "./engine/playback.ts";
import { openRecordings } from "./engine/recordings.ts";
import { createPlayers } from "./engine/players.ts";
import { SentBroadcasts } from "./engine/sent-broadcasts.ts";
import { openStrm } from "./engine/strm.ts";
import { createCache } from "./engine/storage.ts";
import { openSwarms } from "./engine/swarms.ts";
import { createApp } from "./http/app.ts";
import type { FrontName } from "./http/context.ts";
import { Fronts } from "./http/fronts/serve.ts";
import { FrontStates } from "./http/fronts/states.ts";
import { startRelay } from "./live/broadcast/relay.ts";
import { LoopDelay } from "./metrics/loop-delay.ts";
import { Metrics } from "./metrics/metrics.ts";
import type { CushionSetting } from "./playback/cushion.ts";
import type { Ports, RequestInfo } from "./ports.ts";

export type { Engine, EngineOptions } from "./engine/options.ts";

/** The assumed caller of a request for which an embedder gives none. */
const LOCAL: RequestInfo = { remote: { host: "127.0.0.1", port: 0 } };

/**
 * Makes an engine on `ports`. Nothing runs before this is called and nothing after `close()`. Rejects with `conflict`
 * (peer port taken), `io` (directories), `config` (options that contradict each other).
 *
 * @example
 * ```ts
 * import { createPorts } from "../platform/deno/ports.ts"; // from the npm package: "millrace/deno"
 *
 * const engine = await createEngine(createPorts(), { cache: "ram", dht: false });
 * Deno.serve((request, { remoteAddr: { hostname: host, port } }) => engine.fetch(request, { remote: { host, port } }));
 * ```
 */
export async function createEngine(ports: Ports, options: EngineOptions = {}): Promise<Engine> {
  const ground = createGround(ports, options);
  try {
    return await assemble(ground);
  } catch (error) {
    await ground.closing.close();
    throw error;
  }
}

async function assemble(ground: Ground): Promise<Engine> {
  const { ports, localPorts, options, stateDir, startTimeoutMs, closing } = ground;
  const { clock, log } = ports;
  const access = await openAccess(ground);
  const { store, policy } = access;
  const cache = await createCache(ports, options);
  closing.push(() => cache.close());
  const metrics = new Metrics();
  const kept = openKeptContent(ground);
  const swarms = await openSwarms(ground, cache, kept.transportCache);
  const { manager, broadcasts } = swarms;
  const finding = createContent(ground, kept, swarms, store);
  const { resolver, content, metadataOf } = finding;
  const cushion: CushionSetting = { choice: options.cushion ?? "auto" };
  const sessions = await openSessions(ground, swarms, finding, kept.transportCache, metrics, cushion);
  const library = openLibrary(ground, store, finding, swarms);
  const recordings = await openRecordings(ground, sessions, library.channels);
  const playing = await createPlayers(localPorts, options, stateDir, policy);
  const isFound = options.playerDiscovery ?? true;
  const announcements = new Announcements({
    ports: localPorts,
    token: access.token,
    policy,
    mediaServer: isFound && (options.fronts ?? []).includes("dlna"),
    tuner: isFound && (options.fronts ?? []).includes("hdhomerun")
      ? {
        lineup: () => library.channels.lineup(),
        ask: async (request, info) => await app.fetch(request, { info, isChecked: false }),
      }
      : null,
  });
  const sent = new SentBroadcasts({ files: ports.files, sha256: ports.sha256, log, clock, swarms: broadcasts });
  const loopDelay = new LoopDelay(clock);
  loopDelay.start();
  // What people see ends at once, even while lists and swarms take their time.
  closing.push(
    () => loopDelay.close(),
    () => sessions.close(),
    () => sent.close(),
    () => playing.close(),
    () => announcements.close(),
  );
  const frontStates = new FrontStates({ files: ports.files, stateDir, clock, log });
  closing.push(() => frontStates.close());
  const strm = openStrm(ground, { ...library, content }, frontStates, access.token);
  const httpParts = createHttpParts(ground, {
    access,
    cache,
    kept,
    swarms,
    finding,
    cushion,
    sessions,
    library,
    recordings,
    playing,
    sent,
    metrics,
    loopDelay,
    frontStates,
  });
  const fronts = new Fronts(httpParts);
  const app = createApp(httpParts, fronts);
  await library.lists.start();
  await library.guide.start();
  return {
    fetch: async (request, info) => {
      const asked = info?.front === undefined ? app : fronts.at(info.front as FrontName);
      return await (asked ?? app).fetch(request, { info: info ?? LOCAL, isChecked: info === undefined });
    },
    get peerAddress() {
      return manager.peerAddress;
    },
    access: policy,
    servedAt(address) {
      playing.servedAt(address);
      announcements.servedAt(address);
      strm?.servedAt(address);
    },
    swarms: manager,
    broadcasts,
    broadcast: (wanted) => sent.start(wanted),
    relay: async (selector, { signal } = {}) => {
      const late = deadline(clock, startTimeoutMs, signal ? AbortSignal.any([signal, closing.signal]) : closing.signal);
      try {
        const target = await resolver.resolve(selector, { callerIsLocal: true, signal: late.signal });
        const metainfo = target.metainfo ?? await metadataOf(target.magnet!, target.servers ?? "any", late.signal);
        return await startRelay(broadcasts, { ...target, metainfo });
      } finally {
        late.cancel();
      }
    },
    close: () => closing.close(),
  };
}
