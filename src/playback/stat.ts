/** What `stat_url` answers: section 2.3 of the HTTP API, B15. */
import type { PlaybackSession } from "./session.ts";

/** How full the cache is, bytes. */
export interface CacheFigures {
  readonly limitBytes: number;
  readonly usedBytes: number;
}

/** The object under `response`; `prebufferWord` is `prefuf`, or `prebuf` under a path alias. */
export function statOf(
  session: PlaybackSession,
  cache: CacheFigures,
  prebufferWord: "prefuf" | "prebuf",
): Record<string, unknown> {
  const status = session.swarm.status();
  const metainfo = session.swarm.metainfo;
  const activeBytes = Math.min(cache.usedBytes, status.havePieces * (metainfo?.pieceLengthBytes ?? 0));
  return {
    status: session.prebuffering ? prebufferWord : "dl",
    peers: status.peers,
    speed_down: Math.round(status.downloadBytesPerSecond / 1024),
    speed_up: Math.round(status.uploadBytesPerSecond / 1024),
    downloaded: status.downloadedBytes,
    uploaded: status.uploadedBytes,
    progress: session.prebufferProgress,
    total_progress: metainfo === null || metainfo.pieceCount === 0
      ? 0
      : Math.floor(100 * status.havePieces / metainfo.pieceCount),
    network_monitor_status: -1,
    network_monitor_started: false,
    debug_level: 0,
    disk_cache_stats: {
      avail: cache.limitBytes === 0 ? -1 : Math.max(0, cache.limitBytes - cache.usedBytes),
      disk_cache_limit: cache.limitBytes,
      inactive_inuse: cache.usedBytes - activeBytes,
      active_inuse: activeBytes,
    },
    selected_stream_index: -1,
    selected_file_index: session.file.index,
    stream_status: -1,
    manifest_access_mode: -1,
    client_session_id: session.clientSessionId,
    playback_session_id: session.id,
    is_encrypted: 0,
    is_live: 0,
    infohash: session.identity.infohashHex,
    stall_reason: session.stallReason,
    error_message: session.errorMessage,
  };
}
