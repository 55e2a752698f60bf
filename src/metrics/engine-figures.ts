/** Figures that the engine's parts keep themselves, read at each scrape. */
import type { Clock, RuntimeFacts } from "../ports.ts";
import { VERSION } from "../version.ts";
import { countedElsewhere, gauge, type MetricFamily, type MetricSample } from "./exposition.ts";
import type { Traffic, TrafficTotals } from "./traffic-totals.ts";

/** A swarm of either kind. */
interface Figures {
  status(): Traffic & { readonly peers: number };
}

/** Where the figures are read. */
export interface EngineFiguresParts {
  readonly clock: Clock;
  readonly runtime: RuntimeFacts;
  readonly torrents: { readonly running: () => readonly Figures[]; readonly totals: TrafficTotals };
  readonly broadcasts: { readonly running: () => readonly Figures[]; readonly totals: TrafficTotals };
  readonly cache: () => { readonly limitBytes: number; readonly usedBytes: number };
  readonly sessions: () => readonly {
    readonly identity: { readonly output: string };
    readonly prebuffering: boolean;
    readonly stallReason: string | null;
    readonly failed: boolean;
  }[];
  /** Whether a peer, a DHT node or a tracker answers. */
  readonly isConnected: () => boolean;
}

/** States of a session that `millrace_sessions` distinguishes. */
const STATES = ["prebuffering", "playing", "stalled", "failed"] as const;
const OUTPUTS = ["ts", "hls", "file"] as const;

/** The families, for `exposition`. */
export function engineFigures(parts: EngineFiguresParts): readonly MetricFamily[] {
  const { runtime } = parts;
  const startedS = parts.clock.now() / 1000;
  const kinds = { torrent: parts.torrents, broadcast: parts.broadcasts };
  const byKind = (read: (running: readonly Figures[], totals: TrafficTotals) => number): MetricSample[] =>
    Object.entries(kinds).map(([kind, { running, totals }]) => ({ labels: { kind }, value: read(running(), totals) }));
  const total = (read: (traffic: Traffic) => number) => byKind((running, totals) => read(totals.now(running)));
  const moved = (): MetricSample[] =>
    Object.entries(kinds).flatMap(([kind, { running, totals }]) => {
      const { downloadedBytes, uploadedBytes } = totals.now(running());
      return [
        { labels: { kind, direction: "down" }, value: downloadedBytes },
        { labels: { kind, direction: "up" }, value: uploadedBytes },
      ];
    });
  return [
    gauge("millrace_build_info", "Version and runtime, as labels of a 1.", () => [{
      labels: { version: VERSION, runtime: runtime.name, runtime_version: runtime.version, platform: runtime.platform },
      value: 1,
    }]),
    gauge("millrace_start_time_seconds", "When the engine started, Unix seconds.", () => startedS),
    gauge("millrace_memory_bytes", "Memory of the process, by kind.", () => memorySamples(runtime)),
    gauge("millrace_timers", "Timers that wait.", () => {
      const usage = runtime.usage?.();
      return usage === undefined ? [] : [{ labels: {}, value: usage.timers }];
    }),
    gauge(
      "millrace_network_connected",
      "1 when a peer, a DHT node or a tracker answers.",
      () => Number(parts.isConnected()),
    ),
    gauge("millrace_swarms", "Swarms that are joined.", () => byKind((running) => running.length)),
    gauge(
      "millrace_peers",
      "Peers with a finished handshake.",
      () => byKind((running) => running.reduce((sum, swarm) => sum + swarm.status().peers, 0)),
    ),
    countedElsewhere("millrace_peer_bytes_total", "Payload from peers (verified) and to peers.", moved),
    countedElsewhere(
      "millrace_wasted_bytes_total",
      "Payload that was thrown away: duplicates and false data.",
      () => total(({ wastedBytes }) => wastedBytes),
    ),
    countedElsewhere(
      "millrace_pieces_failed_total",
      "Pieces (blocks, in broadcasts) whose hash did not match.",
      () => total(({ failedPieces }) => failedPieces),
    ),
    gauge("millrace_cache_used_bytes", "Pieces that are stored.", () => parts.cache().usedBytes),
    gauge("millrace_cache_limit_bytes", "Limit of the piece cache; 0: none.", () => parts.cache().limitBytes),
    gauge("millrace_sessions", "Playback sessions by output and state.", () => sessionSamples(parts.sessions())),
  ];
}

function memorySamples({ usage }: RuntimeFacts): MetricSample[] {
  const now = usage?.();
  if (now === undefined) return [];
  const kinds = { resident: now.residentBytes, heap: now.heapBytes, external: now.externalBytes };
  return Object.entries(kinds).map(([kind, value]) => ({ labels: { kind }, value }));
}

function sessionSamples(sessions: ReturnType<EngineFiguresParts["sessions"]>): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const output of OUTPUTS) {
    const own = sessions.filter(({ identity }) => identity.output === output);
    for (const state of STATES) {
      samples.push({ labels: { output, state }, value: own.filter((session) => stateOf(session) === state).length });
    }
  }
  return samples;
}

function stateOf(
  { failed, stallReason, prebuffering }: ReturnType<EngineFiguresParts["sessions"]>[number],
): typeof STATES[number] {
  return failed ? "failed" : stallReason !== null ? "stalled" : prebuffering ? "prebuffering" : "playing";
}
