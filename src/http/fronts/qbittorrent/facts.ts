/** The JSON of qBittorrent's Web API: torrents, their files, and preferences. Names of fields are the interface's. */
import { isLive } from "../../../metainfo/live.ts";
import type { Metainfo } from "../../../metainfo/types.ts";
import { storedPaths } from "../../../storage/placement.ts";
import type { HttpParts } from "../../context.ts";
import { isShared, progressOf, type WholeDownloads } from "./downloads.ts";
import type { QbittorrentTorrent } from "./kept.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What clients take for "not known", s. */
const NEVER_S = 8_640_000;
/** Most files of a torrent whose progress is looked up one by one. */
const MAX_FILES_LOOKED_AT = 500;

/** Folder of a torrent's files; empty: this engine keeps none. */
export function folderOf({ whole }: HttpParts, hash: string): string {
  return whole.directory === null ? "" : `${whole.directory}/${hash}`;
}

async function descriptionOf({ api: { content } }: HttpParts, hash: string): Promise<Metainfo | null> {
  const metainfo = await content.known(hash);
  return metainfo === null || isLive(metainfo) ? null : metainfo;
}

/** The file or folder that the torrent is on the disk; empty while that is not known. */
function contentPath(parts: HttpParts, hash: string, metainfo: Metainfo | null): string {
  const folder = folderOf(parts, hash);
  const [first] = metainfo === null ? [] : storedPaths(metainfo);
  return folder === "" || first === undefined ? "" : `${folder}/${first.split("/")[0]}`;
}

/** A torrent of `torrents/info`. */
export async function torrentFields(
  torrent: QbittorrentTorrent,
  parts: HttpParts,
  downloads: WholeDownloads,
): Promise<Fields> {
  const { hash, name, category, tags, link, addedS, completedS, uploadedBytes, seededS } = torrent;
  const swarm = downloads.swarmOf(hash);
  const metainfo = swarm?.metainfo ?? await descriptionOf(parts, hash);
  const status = swarm?.status() ?? null;
  const sizeBytes = metainfo?.totalBytes ?? torrent.sizeBytes;
  const progress = completedS !== null ? 1 : swarm === null ? torrent.progress : progressOf(swarm);
  const path = contentPath(parts, hash, metainfo);
  const left = Math.round(sizeBytes * (1 - progress));
  const speed = Math.round(status?.downloadBytesPerSecond ?? 0);
  const seeds = swarm?.picture(0).peers.filter(({ isSeed }) => isSeed).length ?? 0;
  return {
    ...{ hash, infohash_v1: hash, infohash_v2: "", name, category, tags: tags.join(", "), magnet_uri: link },
    ...{ size: sizeBytes, total_size: sizeBytes, progress, amount_left: left, completed: sizeBytes - left },
    ...{ downloaded: sizeBytes - left, downloaded_session: status?.downloadedBytes ?? 0 },
    ...{ uploaded: uploadedBytes, uploaded_session: status?.uploadedBytes ?? 0 },
    ...{ dlspeed: speed, upspeed: Math.round(status?.uploadBytesPerSecond ?? 0), dl_limit: -1, up_limit: -1 },
    ...{
      eta: speed > 0 && left > 0 ? Math.ceil(left / speed) : NEVER_S,
      state: await stateOf(torrent, parts, downloads, path),
    },
    ...{ save_path: folderOf(parts, hash), content_path: path, download_path: "", root_path: path },
    ...{ added_on: addedS, completion_on: completedS ?? -1, last_activity: completedS ?? addedS, seen_complete: -1 },
    ...{ time_active: Math.max(0, Math.floor(parts.clock.now() / 1000) - addedS), seeding_time: seededS },
    ...{ ratio: sizeBytes === 0 ? 0 : uploadedBytes / sizeBytes, ratio_limit: torrent.ratioLimit, max_ratio: -1 },
    ...{ seeding_time_limit: torrent.seedingTimeLimit, max_seeding_time: -1 },
    ...{ inactive_seeding_time_limit: torrent.inactiveSeedingTimeLimit, max_inactive_seeding_time: -1 },
    ...{ num_seeds: seeds, num_complete: seeds, num_incomplete: -1, tracker: "", trackers_count: 0 },
    num_leechs: Math.max(0, (status?.peers ?? 0) - seeds),
    ...{ availability: -1, priority: 0, auto_tmm: false, force_start: false, super_seeding: false },
    ...{ seq_dl: false, f_l_piece_prio: false },
  };
}

async function stateOf(
  torrent: QbittorrentTorrent,
  { api }: HttpParts,
  downloads: WholeDownloads,
  path: string,
): Promise<string> {
  const { hash, completedS, isStopped } = torrent;
  const swarm = downloads.swarmOf(hash);
  if (completedS !== null) {
    // Somebody may have taken the files away.
    if (path !== "" && !await api.files.info(path).then(() => true, () => false)) return "missingFiles";
    if (swarm === null) return isStopped || isShared(torrent) ? "stoppedUP" : "queuedUP";
    return swarm.status().uploadBytesPerSecond > 0 ? "uploading" : "stalledUP";
  }
  if (isStopped || !downloads.isPossible) return "stoppedDL";
  switch (downloads.phaseOf(hash)) {
    case "metadata":
      return "metaDL";
    case "downloading":
      return (swarm?.status().downloadBytesPerSecond ?? 0) > 0 ? "downloading" : "stalledDL";
    case "failed":
      return "stalledDL";
    default:
      return "queuedDL";
  }
}

/** `torrents/properties`. */
export async function propertyFields(
  torrent: QbittorrentTorrent,
  parts: HttpParts,
  downloads: WholeDownloads,
): Promise<Fields> {
  const fields = await torrentFields(torrent, parts, downloads);
  const metainfo = await descriptionOf(parts, torrent.hash);
  return {
    ...{ hash: torrent.hash, infohash_v1: torrent.hash, infohash_v2: "", name: fields["name"], comment: "" },
    ...{ save_path: fields["save_path"], download_path: "", creation_date: -1, created_by: "" },
    ...{ piece_size: metainfo?.pieceLengthBytes ?? -1, pieces_num: metainfo?.pieceCount ?? -1 },
    pieces_have: Math.round(Number(fields["progress"]) * (metainfo?.pieceCount ?? 0)),
    ...{ total_size: fields["size"], total_downloaded: fields["downloaded"], total_uploaded: fields["uploaded"] },
    ...{ total_wasted: 0, dl_speed: fields["dlspeed"], up_speed: fields["upspeed"], dl_limit: -1, up_limit: -1 },
    ...{
      eta: fields["eta"],
      share_ratio: fields["ratio"],
      seeding_time: torrent.seededS,
      addition_date: torrent.addedS,
    },
    ...{ time_elapsed: fields["time_active"], completion_date: fields["completion_on"], last_seen: -1 },
    ...{ seeds: fields["num_seeds"], seeds_total: -1, peers: fields["num_leechs"], peers_total: -1, nb_connections: 0 },
    ...{ nb_connections_limit: 0, is_private: false },
  };
}

/** `torrents/files`; empty until the description is known. */
export async function fileFields(
  torrent: QbittorrentTorrent,
  parts: HttpParts,
  downloads: WholeDownloads,
): Promise<Fields[]> {
  const swarm = downloads.swarmOf(torrent.hash);
  const metainfo = swarm?.metainfo ?? await descriptionOf(parts, torrent.hash);
  if (metainfo === null) return [];
  const paths = storedPaths(metainfo);
  const isWhole = torrent.completedS !== null;
  const isLookedAt = metainfo.files.length <= MAX_FILES_LOOKED_AT;
  return metainfo.files.flatMap(({ index, sizeBytes, offset, padding }) => {
    if (padding) return [];
    const cells = isWhole || !isLookedAt ? null : swarm?.picture(index).cells ?? null;
    const here = cells === null ? 0 : cells.here.reduce((sum, ninths) => sum + ninths, 0) / (9 * cells.here.length);
    const first = Math.floor(offset / metainfo.pieceLengthBytes);
    const last = Math.max(first, Math.ceil((offset + sizeBytes) / metainfo.pieceLengthBytes) - 1);
    const progress = isWhole ? 1 : isLookedAt ? here : torrent.progress;
    return [{
      ...{ index, name: paths[index], size: sizeBytes, progress, priority: 1, is_seed: isWhole },
      ...{ piece_range: [first, last], availability: -1 },
    }];
  });
}

/** `app/preferences`: those that clients read. Torrents without limits of their own are not shared once they are whole. */
export function preferences({ whole, api }: HttpParts): Fields {
  const { network, limits } = api.operating.settings();
  return {
    ...{ save_path: whole.directory ?? "", temp_path_enabled: false, temp_path: "", create_subfolder_enabled: true },
    ...{ dht: network.sources.dht, pex: network.sources.pex, lsd: network.sources.lsd, queueing_enabled: false },
    ...{
      max_ratio_enabled: true,
      max_ratio: 0,
      max_ratio_act: 0,
      max_seeding_time_enabled: false,
      max_seeding_time: -1,
    },
    ...{ max_inactive_seeding_time_enabled: false, max_inactive_seeding_time: -1, listen_port: network.peerPort ?? 0 },
    ...{ dl_limit: limits.downloadBytesPerSecond, up_limit: limits.uploadBytesPerSecond, locale: "en" },
    ...{ auto_tmm_enabled: false, start_paused_enabled: false, add_stopped_enabled: false },
  };
}

/** `transfer/info`. */
export function transferFields({ api }: HttpParts, torrents: readonly Fields[]): Fields {
  const { limits } = api.operating.settings();
  const sum = (name: string) => torrents.reduce((all, torrent) => all + Number(torrent[name]), 0);
  return {
    ...{ dl_info_speed: sum("dlspeed"), up_info_speed: sum("upspeed"), dl_info_data: sum("downloaded_session") },
    ...{ up_info_data: sum("uploaded_session"), dl_rate_limit: limits.downloadBytesPerSecond, dht_nodes: 0 },
    ...{
      up_rate_limit: limits.uploadBytesPerSecond,
      connection_status: api.isConnected() ? "connected" : "disconnected",
    },
  };
}
