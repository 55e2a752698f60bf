/**
 * Discovery that begins on request. Trackers classify a peer by the "left" of its first announce, so a swarm that knows
 * its metadata announces only once it knows what it has. A magnet cannot wait, because it has yet to find peers.
 */
import type {
  AnnounceState,
  Discovery,
  DiscoveryRequest,
  DiscoverySession,
  DiscoverySourceStatus,
  ServerScope,
} from "../discovery/types.ts";
import { SearchPace } from "./search-pace.ts";
import type { Transfer } from "./transfer.ts";

/** Discovery of one swarm. Without a `discovery` it does nothing. */
export class Announcing implements DiscoverySession {
  readonly #discovery: Discovery | null;
  readonly #request: DiscoveryRequest;
  /** Trackers learnt after the request; bounded by what one magnet or transport file may name. */
  #learnt: { readonly tiers: readonly (readonly string[])[]; readonly scope: ServerScope }[] = [];
  #session: DiscoverySession | null = null;
  #isPrivate: boolean;
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
    return false;
  }

  /** Ends it until the next `begin`; trackers get `stopped`. */
  async pause(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    await session?.close();
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

/** Descriptions of one torrent that are remembered until it begins. */
const MAX_LEARNT = 64;

/** "Left" bytes reported to trackers while the size is unknown: anything but 0, which would make us a seeder. */
const UNKNOWN_LEFT_BYTES = 16_384;

/** What trackers are told about `transfer`; null while the metadata is unknown. */
export function announceState(transfer: Transfer | null, uploadedBytes: number): AnnounceState {
  return {
    uploadedBytes,
    downloadedBytes: transfer?.downloadedBytes ?? 0,
    leftBytes: transfer === null ? UNKNOWN_LEFT_BYTES : transfer.leftBytes,
  };
}
