/** TorrServer's JSON: the state of a torrent, of its cache, and of the server. Field names are the interface's. */
import type { Metainfo } from "../../../metainfo/types.ts";
import type { AnyMetainfo } from "../../../metainfo/live.ts";
import type { PlaybackSession } from "../../../playback/session.ts";
import type { EngineSettings } from "../../api/parts.ts";
import { numberedFiles } from "./file-ids.ts";
import type { TorrServerTorrent } from "./kept.ts";
import type { TorrentWork } from "./work.ts";

/** States of a torrent; clients compare both the number and the words. */
const STATES = {
  added: [0, "Torrent added"],
  searching: [1, "Torrent getting info"],
  preloading: [2, "Torrent preload"],
  working: [3, "Torrent working"],
  asleep: [5, "Torrent in db"],
} as const;

/** The state of a torrent. Absent numbers count as 0 in clients; `file_stats` must be absent until the files are known. */
export async function statusOf(torrent: TorrServerTorrent, work: TorrentWork): Promise<Record<string, unknown>> {
  const { hash, title, category, poster, data, addedS, sizeBytes } = torrent;
  const isAwake = work.isAwake(hash);
  const metainfo = isAwake ? await work.known(hash) : null;
  const preload = work.preloadOf(hash);
  const state = preload?.isRunning
    ? STATES.preloading
    : metainfo !== null
    ? STATES.working
    : work.isSearching(hash)
    ? STATES.searching
    : isAwake
    ? STATES.added
    : STATES.asleep;
  return {
    title: title || (metainfo?.name ?? ""),
    category,
    poster,
    ...(data === "" ? {} : { data }),
    timestamp: addedS,
    torrent_size: sizeBytes,
    ...(metainfo === null ? {} : { name: metainfo.name }),
    hash,
    stat: state[0],
    stat_string: state[1],
    ...(metainfo === null ? {} : filesOf(metainfo)),
    ...(preload === null ? {} : { preloaded_bytes: preload.fetchedBytes, preload_size: preload.goalBytes }),
    ...figuresOf(work.sessionOf(hash)),
  };
}

function filesOf(metainfo: AnyMetainfo): Record<string, unknown> {
  return {
    file_stats: numberedFiles(metainfo).map(({ id, path, sizeBytes }) => ({ id, path, length: sizeBytes })),
  };
}

/** What a swarm does. */
function figuresOf(session: PlaybackSession | null): Record<string, unknown> {
  if (session === null) return {};
  const { swarm, file } = session;
  const { peers, downloadBytesPerSecond, uploadBytesPerSecond, ...status } = swarm.status();
  const seeders = swarm.picture(file.index).peers.filter(({ isSeed }) => isSeed).length;
  return {
    loaded_size: Math.min(status.havePieces * (swarm.metainfo?.pieceLengthBytes ?? 0), swarm.metainfo?.totalBytes ?? 0),
    download_speed: downloadBytesPerSecond,
    upload_speed: uploadBytesPerSecond,
    total_peers: peers,
    active_peers: peers,
    connected_seeders: seeders,
    bytes_read: status.downloadedBytes,
    bytes_read_useful_data: status.downloadedBytes,
    bytes_written: status.uploadedBytes,
    bytes_written_data: status.uploadedBytes,
    pieces_dirtied_bad: status.failedPieces,
  };
}

/**
 * How much of the file that plays is downloaded. A long file has fewer entries than pieces: each stands for the pieces up to
 * the next one.
 */
export async function cacheOf(
  torrent: TorrServerTorrent,
  work: TorrentWork,
  capacityBytes: number,
): Promise<Record<string, unknown>> {
  const session = work.sessionOf(torrent.hash);
  const metainfo = session?.swarm.metainfo ?? null;
  if (session === null || metainfo === null) return {};
  const { cells } = session.swarm.picture(session.file.index);
  const first = Math.floor(session.file.offset / metainfo.pieceLengthBytes);
  const pieces = cells === null ? [] : piecesOf(cells, first, metainfo);
  return {
    Hash: torrent.hash,
    Capacity: capacityBytes,
    Filled: pieces.reduce((sum, { Size }) => sum + Size, 0),
    PiecesLength: metainfo.pieceLengthBytes,
    PiecesCount: metainfo.pieceCount,
    Torrent: await statusOf(torrent, work),
    Pieces: Object.fromEntries(pieces.map((piece) => [String(piece.Id), piece])),
    Readers: (cells?.readers ?? []).map((cell) => {
      const reader = pieces[cell]?.Id ?? first;
      return { Start: reader, End: reader, Reader: reader };
    }),
  };
}

function piecesOf(
  { pieceCount, here }: { readonly pieceCount: number; readonly here: readonly number[] },
  first: number,
  { pieceLengthBytes }: Pick<Metainfo, "pieceLengthBytes">,
) {
  return here.map((ninths, cell) => ({
    Id: first + Math.ceil(cell * pieceCount / here.length),
    Length: pieceLengthBytes,
    Size: Math.floor(pieceLengthBytes * ninths / 9),
    Completed: ninths === 9,
    Priority: 0,
  }));
}

/** All settings of the original, which typed clients demand; those that the engine has are its own. */
export function settingsOf(
  { cacheBytes, preloadPercent }: { readonly cacheBytes: number; readonly preloadPercent: number },
  { limits, network }: EngineSettings,
): Record<string, unknown> {
  return {
    CacheSize: cacheBytes,
    ReaderReadAHead: 95,
    PreloadCache: preloadPercent,
    UseDisk: false,
    TorrentsSavePath: "",
    RemoveCacheOnDrop: false,
    ForceEncrypt: false,
    RetrackersMode: 0,
    TorrentDisconnectTimeout: 60,
    EnableDebug: false,
    EnableDLNA: false,
    FriendlyName: "",
    EnableRutorSearch: false,
    EnableTorznabSearch: false,
    TorznabUrls: [],
    EnableIPv6: true,
    DisableTCP: false,
    DisableUTP: false,
    DisableUPNP: false,
    DisableDHT: !network.sources.dht,
    DisablePEX: !network.sources.pex,
    DisableUpload: false,
    DownloadRateLimit: Math.ceil(limits.downloadBytesPerSecond / 1024),
    UploadRateLimit: Math.ceil(limits.uploadBytesPerSecond / 1024),
    ConnectionsLimit: limits.maxPeers,
    PeersListenPort: network.peerPort ?? 0,
    SslPort: 0,
    SslCert: "",
    SslKey: "",
    ResponsiveMode: true,
  };
}

/** Tracks of a file that was opened, in the form of ffprobe's JSON. */
export function probeOf(session: PlaybackSession): Record<string, unknown> {
  const { presentation, file } = session;
  const durationS = presentation?.durationMs == null ? {} : { duration: (presentation.durationMs / 1000).toFixed(6) };
  return {
    streams: (presentation?.tracks ?? []).map((track, index) => ({
      index,
      codec_name: track.codec,
      codec_type: track.kind,
      ...(track.width === null ? {} : { width: track.width, height: track.height }),
      ...(track.sampleRate === null ? {} : { sample_rate: String(track.sampleRate), channels: track.channels }),
      tags: {
        ...(track.language === null ? {} : { language: track.language }),
        ...(track.name && { title: track.name }),
      },
    })),
    format: {
      filename: file.name,
      nb_streams: presentation?.tracks.length ?? 0,
      format_name: presentation?.container ?? "",
      size: String(file.sizeBytes),
      ...durationS,
      ...(presentation?.bytesPerSecond == null
        ? {}
        : { bit_rate: String(Math.round(8 * presentation.bytesPerSecond)) }),
    },
  };
}
