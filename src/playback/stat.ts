/** The response of `stat_url`: section 2.3 of the HTTP API. */
import type { MemberFigures } from "../live/swarm/member-figures.ts";
import type { Track } from "../media/model/types.ts";
import { cmafFormat } from "../media/mux/cmaf/formats.ts";
import type { LiveSession } from "./live/live-session.ts";
import type { PlaybackSession } from "./session.ts";
import type { AnySession } from "./sessions.ts";

/** How full the cache is, bytes. */
export interface CacheFigures {
  readonly limitBytes: number;
  readonly usedBytes: number;
}

/** What is wrong with the proxy that all goes through. */
export interface ProxyFacts {
  /** Its address, without a password. */
  readonly server: string;
  /** Why nothing goes through; null while it works. */
  readonly trouble: string | null;
  /** Why no datagram does: no DHT, no UDP trackers. */
  readonly udpTrouble: string | null;
}

/** What is wrong with the ways out of this machine that the user chose; null: none was chosen. */
export interface EgressFacts {
  readonly proxy: ProxyFacts | null;
  readonly interface: { readonly name: string; readonly trouble: string | null } | null;
}

/** The object under `response`; `prebufferWord` is `prefuf`, or `prebuf` under a path alias. */
export function statOf(
  session: AnySession,
  cache: CacheFigures,
  prebufferWord: "prefuf" | "prebuf",
  { proxy, interface: bound }: EgressFacts = { proxy: null, interface: null },
): Record<string, unknown> {
  const { status, activeBytes, totalProgress } = session.kind === "live"
    ? ofBroadcast(session)
    : ofFile(session, cache);
  const filling = session.kind === "live" ? null : session.cushion.filling;
  return {
    status: session.prebuffering ? prebufferWord : "dl",
    peers: status.peers,
    speed_down: Math.round(status.downloadBytesPerSecond / 1024),
    speed_up: Math.round(status.uploadBytesPerSecond / 1024),
    downloaded: status.downloadedBytes,
    uploaded: status.uploadedBytes,
    progress: session.prebufferProgress,
    total_progress: totalProgress,
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
    selected_file_index: session.identity.fileIndex,
    stream_status: -1,
    manifest_access_mode: -1,
    client_session_id: session.clientSessionId,
    playback_session_id: session.id,
    is_encrypted: 0,
    is_live: session.kind === "live" ? 1 : 0,
    infohash: session.identity.infohashHex,
    cushion_wait_s: filling?.waitS ?? null,
    cushion_play_s: filling?.playS ?? null,
    stall_reason: session.stallReason,
    error_message: session.problem?.message ?? null,
    ...(bound && { interface: { ...bound } }),
    ...(proxy && { proxy: { server: proxy.server, trouble: proxy.trouble, udp_trouble: proxy.udpTrouble } }),
    ...(session.kind === "live" ? { livepos: livePosition(session), ...ofChannel(session) } : {}),
  };
}

/**
 * The additions of `stat` with `detail=1`: the pieces of the file in cells, the fastest peers, the tracks of the
 * output and of the file, and the kind of the error. For a broadcast the members that we are connected to, with the substreams that go between us.
 */
export function detailOf(session: AnySession): Record<string, unknown> {
  if (session.kind === "live") {
    return {
      pieces: null,
      tracks: null,
      source_tracks: null,
      checking: null,
      peer_list: [],
      members: session.stream.source.members().map(memberJson),
      error_code: session.problem?.code ?? null,
    };
  }
  const { cells, peers, checking } = session.swarm.picture(session.identity.fileIndex);
  return {
    pieces: cells && {
      count: cells.pieceCount,
      cells: cells.here.join(""),
      under_way: cells.underWay,
      readers: cells.readers,
    },
    tracks: session.presentation?.outputTracks.map(trackJson) ?? null,
    source_tracks: session.presentation?.tracks.map(trackJson) ?? null,
    checking,
    peer_list: peers.map((peer) => ({
      address: peer.address,
      client: peer.client,
      speed_down: Math.round(peer.downloadBytesPerSecond / 1024),
      speed_up: Math.round(peer.uploadBytesPerSecond / 1024),
      is_seed: peer.isSeed,
      is_open: peer.isOpen,
    })),
    members: [],
    error_code: session.problem?.code ?? null,
  };
}

/** A track as the API reports it. */
function trackJson(track: Track): Record<string, unknown> {
  const { kind, codec, language, width, height } = track;
  return { kind, codec, codecs: cmafFormat(track)?.codecs ?? null, language, width, height };
}

/** A member as the API reports it. */
export function memberJson(member: MemberFigures): Record<string, unknown> {
  return {
    address: member.address,
    is_source: member.isSource,
    from: member.feedsUs,
    to: member.fedByUs,
    lag: member.lagPieces,
    rtt: member.rttMs,
    uplink: member.uplinkBytesPerSecond,
  };
}

function ofFile(session: PlaybackSession, cache: CacheFigures) {
  const status = session.swarm.status();
  const metainfo = session.swarm.metainfo;
  return {
    status,
    activeBytes: Math.min(cache.usedBytes, status.havePieces * (metainfo?.pieceLengthBytes ?? 0)),
    totalProgress: metainfo === null || metainfo.pieceCount === 0
      ? 0
      : Math.floor(100 * status.havePieces / metainfo.pieceCount),
  };
}

/** A broadcast is kept in a window of its own, outside the cache, and is never complete. */
function ofBroadcast(session: LiveSession) {
  return { status: session.stream.source.status(), activeBytes: 0, totalProgress: 0 };
}

/** Our addition: which address of a channel plays, and why it is not the one before. */
function ofChannel({ stream: { source: { channel } } }: LiveSession): Record<string, unknown> {
  if (channel === undefined) return {};
  const { index, count, item, address, isPlaying, changes, reason, title } = channel;
  return { channel: { index, count, item, address, playing: isPlaying, changes, reason, title } };
}

/** Unix seconds as strings. */
function livePosition(session: LiveSession): Record<string, string> {
  const { position } = session;
  const seconds = (ms: number | undefined) => ms === undefined ? "-1" : String(Math.floor(ms / 1000));
  const [first, last] = [seconds(position?.oldestMs), seconds(position?.newestMs)];
  return {
    pos: seconds(position?.positionMs),
    first_ts: first,
    live_first: first,
    last_ts: last,
    live_last: last,
    last,
    is_live: position?.isLive ?? !session.stream.ended ? "1" : "0",
    buffer_pieces: String(position?.piecesAhead ?? 0),
  };
}
