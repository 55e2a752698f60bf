/** The figures of a torrent's swarm. */
import { type DiscoverySourceStatus, trackerTrouble } from "../../discovery/types.ts";
import type { Peers } from "./peers.ts";
import type { Transfer } from "../data/transfer.ts";
import type { SwarmStatus } from "../types.ts";

/** What the figures are taken from. */
export interface SwarmState {
  /** null until the metadata is known. */
  readonly transfer: Transfer | null;
  readonly peers: Peers;
  readonly sources: readonly DiscoverySourceStatus[];
  /** What the user should know, if anything. */
  readonly trouble: string | null;
}

/** The figures at `nowMs`, monotonic. */
export function swarmStatus({ transfer, peers, sources, trouble }: SwarmState, nowMs: number): SwarmStatus {
  return {
    peers: peers.memberCount,
    downloadBytesPerSecond: Math.round(peers.downloadRate.rate(nowMs)),
    uploadBytesPerSecond: Math.round(peers.uploadRate.rate(nowMs)),
    downloadedBytes: transfer?.downloadedBytes ?? 0,
    uploadedBytes: peers.uploadRate.totalBytes,
    wastedBytes: transfer?.wastedBytes ?? 0,
    failedPieces: transfer?.failedPieces ?? 0,
    havePieces: transfer?.bank.have.count ?? 0,
    sources,
    message: trouble ?? trackerTrouble(sources),
  };
}
