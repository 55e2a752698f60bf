/** Settings and state of the engine: our additions, for the web page and other programs of the user. */
import * as z from "zod";
import { type Method, methodsWith } from "../method.ts";
import { INFOHASH, NONE, OK, VERSION_INFO } from "../schemas.ts";
import { versionInfo } from "../../service-routes.ts";
import { CUSHION } from "../../playback-schema.ts";
import { TASK, taskJson } from "./task-json.ts";

const defineMethod = methodsWith<"isConnected" | "lists" | "operating" | "policy" | "runtime">();

/** Fastest limit that is taken, bytes per second: 100 Gbit/s. */
const MAX_RATE = 12_500_000_000;
const RATE = z.int().min(0).max(MAX_RATE).describe("Bytes per second; 0: no limit");

/** The methods of operating. */
export const OPERATING_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_settings",
    summary: "What the engine is set to, and what it uses now: access, limits, cache, network.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({
      version: VERSION_INFO,
      runtime: z.string(),
      access: z.object({ intranet: z.boolean(), internet: z.boolean() }),
      limits: z.object({ download: RATE, upload: RATE, max_peers: z.int() }),
      cushion: z.string().describe("As set_cushion takes it"),
      cache: z.object({ kind: z.enum(["disk", "ram", "seed"]), limit: z.int(), used: z.int() }),
      network: z.object({
        connected: z.boolean(),
        peer_port: z.int().nullable(),
        dht: z.boolean(),
        lsd: z.boolean(),
        pex: z.boolean(),
      }),
      swarms: z.int(),
      peers: z.int(),
      sessions: z.int(),
    }),
    handle(_params, { parts }) {
      const { limits, cushion, cache, network, ...counts } = parts.operating.settings();
      return {
        version: versionInfo(parts.runtime),
        runtime: `${parts.runtime.name} ${parts.runtime.version}`,
        access: { intranet: parts.policy.allows("intranet"), internet: parts.policy.allows("internet") },
        limits: {
          download: limits.downloadBytesPerSecond,
          upload: limits.uploadBytesPerSecond,
          max_peers: limits.maxPeers,
        },
        cushion: String(cushion),
        cache: { kind: cache.kind, limit: cache.limitBytes, used: cache.usedBytes },
        network: { ...network.sources, connected: parts.isConnected(), peer_port: network.peerPort },
        ...counts,
      };
    },
  }),
  defineMethod({
    name: "set_limits",
    summary: "Sets how fast the engine may download and upload, until it ends; 0 is no limit.",
    public: false,
    remote: true,
    params: z.object({ download: RATE.optional(), upload: RATE.optional() }),
    result: OK,
    handle({ download, upload }, { parts }) {
      parts.operating.setLimits({
        ...(download === undefined ? {} : { downloadBytesPerSecond: download }),
        ...(upload === undefined ? {} : { uploadBytesPerSecond: upload }),
      });
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "set_cushion",
    summary:
      "Sets how much of a film is waited for once the peers have proved slower than it, until the engine ends; for sessions that choose none.",
    public: false,
    remote: true,
    params: z.object({ value: CUSHION.describe("auto, off or seconds of the film") }),
    result: OK,
    handle({ value }, { parts }) {
      parts.operating.setCushion(value);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "get_torrent_progress",
    summary:
      "What a torrent does before it plays: who is known and connected, its description, the check of what is on the disk, what its trackers answered, what its magnet link held that could not be used.",
    public: false,
    remote: true,
    params: z.object({ infohash: INFOHASH.describe("Of the torrent") }),
    result: z.object({
      is_running: z.boolean().describe("Whether the engine has joined its swarm"),
      peers: z.int(),
      known_peers: z.int().describe("Addresses of peers that are known"),
      has_metadata: z.boolean(),
      metadata: z.object({ received: z.int(), total: z.int() }).nullable().describe(
        "Bytes; null while nobody sends it",
      ),
      checking: z.object({ done: z.int(), total: z.int() }).nullable().describe("Pieces; null: nothing is verified"),
      trackers: z.array(z.object({
        name: z.string().describe("Without what is secret in its address"),
        peers: z.int(),
        error: z.string().nullable().describe("What it answered instead of peers, or why it did not"),
      })).describe("At most 20"),
      unread: z.array(z.string()).describe("Fields of its magnet link without a usable address (tr=…), at most 20"),
    }),
    handle({ infohash }, { parts }) {
      const progress = parts.operating.progress(infohash);
      const metadata = progress?.metadata ?? null;
      return {
        is_running: progress !== null,
        peers: progress?.peers ?? 0,
        known_peers: progress?.knownPeers ?? 0,
        has_metadata: progress?.hasMetadata ?? false,
        metadata: metadata && { received: metadata.receivedBytes, total: metadata.totalBytes },
        checking: progress?.checking ?? null,
        trackers: (progress?.trackers ?? []).map(({ name, peers, error }) => ({ name, peers, error })),
        unread: [...progress?.unread ?? []],
      };
    },
  }),
  defineMethod({
    name: "get_tasks",
    summary: "All background tasks that are remembered, the newest first, each as in get_task.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({ tasks: z.array(TASK) }),
    handle: (_params, { parts }) => ({ tasks: parts.lists.tasks.list().map((status) => taskJson(status)) }),
  }),
  defineMethod({
    name: "get_log",
    summary: "The newest warnings and errors of the log, at most 100, the newest first.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({
      lines: z.array(z.object({
        time: z.int().describe("Unix seconds"),
        level: z.enum(["error", "warn"]),
        message: z.string(),
        detail: z.string(),
      })),
    }),
    handle: (_params, { parts }) => ({
      lines: parts.operating.log().map(({ atMs, ...line }) => ({ time: Math.floor(atMs / 1000), ...line })),
    }),
  }),
];
