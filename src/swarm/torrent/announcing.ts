/**
 * Discovery that begins on request. Trackers classify a peer by the "left" of its first announce, so a swarm that knows
 * its metadata announces only once it knows what it has. A magnet cannot wait, because it has yet to find peers.
 */
import { fromHex, toHex } from "../../bytes/hex.ts";
import {
  type AnnounceState,
  type Discovery,
  type DiscoveryRequest,
  type DiscoverySession,
  type DiscoverySourceStatus,
  scopeIn,
  type ServerScope,
} from "../../discovery/types.ts";
import { otherName } from "../../metainfo/hash-trees.ts";
import type { Metainfo } from "../../metainfo/types.ts";
import { SearchPace } from "./search-pace.ts";
import type { Transfer } from "../data/transfer.ts";
import type { SwarmTarget } from "../types.ts";

/** Discovery of one swarm. Without a `discovery` it does nothing. */
export class Announcing implements DiscoverySession {
  readonly #discovery: Discovery | null;
  readonly #request: DiscoveryRequest;
  /** Trackers learnt after the request; bounded by what one magnet or transport file may name. */
  #learnt: { readonly tiers: readonly (readonly string[])[]; readonly scope: ServerScope }[] = [];
  #session: DiscoverySession | null = null;
  #isPrivate: boolean;
  /** Another infohash of the torrent. */
  #otherName: Uint8Array | null = null;
  #closed = false;
  readonly #pace: SearchPace;

  constructor(discovery: Discovery | null, request: DiscoveryRequest, pace: SearchPace = new SearchPace()) {
    this.#pace = pace;
    this.#discovery = discovery;
    this.#request = request;
    this.#isPrivate = request.isPrivate;
  }

  /** Starts it unless it is running. Returns whether it was already running. */
  begin(): boolean {
    if (this.#session !== null) return true;
    if (this.#closed || this.#discovery === null) return false;
    this.#session = this.#discovery.start({ ...this.#request, isPrivate: this.#isPrivate });
    for (const { tiers, scope } of this.#learnt) this.#session.addTrackers(tiers, scope);
    if (this.#otherName !== null) this.#session.addName(this.#otherName);
    return false;
  }

  /** Ends it until the next `begin`; trackers get `stopped`. */
  async pause(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    await session?.close();
  }

  /**
   * The metadata is known, with the other name of a hybrid; it is announced once `unused` resolves. A tracker that hears from
   * us twice goes by what it heard last.
   */
  async describe(metainfo: Metainfo, unused: Promise<void>): Promise<void> {
    await unused;
    const other = otherName(toHex(this.#request.infohash), metainfo);
    if (other !== null) this.addName(fromHex(other));
  }

  addName(infohash: Uint8Array): void {
    this.#otherName = infohash;
    this.#session?.addName(infohash);
  }

  setPrivate(): void {
    this.#isPrivate = true;
    this.#session?.setPrivate();
  }

  addTrackers(tiers: readonly (readonly string[])[], scope: ServerScope = "any"): void {
    this.#session?.addTrackers(tiers, scope);
    if (this.#learnt.length < MAX_LEARNT && !this.#closed) this.#learnt.push({ tiers, scope });
  }

  needPeers(isUrgent = false): void {
    this.#session?.needPeers(isUrgent);
  }

  /** Asks for more peers when `SearchPace.due` says so. */
  needPeersAgain(nowMs: number, isShort: boolean, isLonely: boolean): void {
    const need = this.#pace.due(nowMs, isShort, isLonely);
    if (need !== "none") this.needPeers(need === "urgent");
  }

  completed(): void {
    this.#session?.completed();
  }

  status(): readonly DiscoverySourceStatus[] {
    return this.#session?.status() ?? [];
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#learnt = [];
    await this.#session?.close();
  }
}

/** What `target` names, as discovery takes it. */
export function namedIn(
  { metainfo, magnet, servers = "any" }: SwarmTarget,
): Pick<DiscoveryRequest, "trackers" | "servers" | "isPrivate"> {
  return {
    trackers: metainfo?.trackers ?? (magnet?.trackers ?? []).map((tracker) => [tracker]),
    servers: scopeIn(metainfo ?? {}, servers),
    isPrivate: metainfo?.isPrivate ?? false,
  };
}

/** Descriptions of one torrent that are remembered until it begins. */
const MAX_LEARNT = 64;

/** "Left" bytes reported to trackers while the size is unknown: anything but 0, which would make us a seeder. */
const UNKNOWN_LEFT_BYTES = 16_384;

/** The figures of `transfer` for trackers; null while the metadata is unknown. */
export function announceState(transfer: Transfer | null, uploadedBytes: number): AnnounceState {
  return {
    uploadedBytes,
    downloadedBytes: transfer?.downloadedBytes ?? 0,
    leftBytes: transfer === null ? UNKNOWN_LEFT_BYTES : transfer.leftBytes,
  };
}
