/**
 * Places that are kept free for newcomers, so that a viewer that knows one address of the swarm gets in, however full
 * that member is.
 */
import type { LiveNode } from "../node/live-node.ts";
import type { PeerAdmission } from "./admission.ts";
import type { LivePeerSession } from "./live-session.ts";

/** This many places are cleared for newcomers. */
export const LOBBY_PEERS = 4;
/** Each newcomer stays for at least this long, ms: it fetches the metadata and learns of the others. */
const LOBBY_MS = 1500;

/**
 * The neighbours to leave so that newcomers find places: unused ones first, then those that let us down, then those that
 * others can connect to, because they find another member more easily, then the latest. When one network has all the
 * places that it may have, the places are cleared among its own members, for the next of them.
 */
export function lobbyLeavers(
  sessions: Iterable<LivePeerSession>,
  admission: Pick<PeerAdmission, "incomingRoom" | "crowdedSubnet" | "isOf">,
  node: Pick<LiveNode, "conduct" | "isUsed">,
  nowMs: number,
): readonly LivePeerSession[] {
  const settled = [...sessions].filter((session) => {
    return session.incoming && session.isReady && nowMs - session.startedMs >= LOBBY_MS;
  });
  const isUsed = ({ peer }: LivePeerSession) => peer !== null && node.isUsed(peer);
  const doubts = ({ peer }: LivePeerSession) => peer === null ? 0 : node.conduct.doubts(peer, nowMs);
  settled.sort((a, b) => {
    return Number(isUsed(a)) - Number(isUsed(b)) || doubts(b) - doubts(a) ||
      Number(b.reach === "open") - Number(a.reach === "open") ||
      b.startedMs - a.startedMs;
  });
  const leavers = settled.slice(0, Math.max(0, LOBBY_PEERS - admission.incomingRoom));
  const crowded = admission.crowdedSubnet(LOBBY_PEERS);
  if (crowded === null || leavers.length > 0) return leavers;
  return settled.filter(({ host }) => admission.isOf(host, crowded.subnet)).slice(0, LOBBY_PEERS - crowded.room);
}
