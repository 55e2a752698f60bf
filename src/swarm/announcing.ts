/**
 * Discovery that begins when told to. Trackers classify a peer by the "left" of its first announce, so a swarm that
 * knows its metadata announces only once it knows what it has; a magnet cannot wait, because it has yet to find peers.
 */
import type {
  Discovery,
  DiscoveryRequest,
  DiscoverySession,
  DiscoverySourceStatus,
  ServerScope,
} from "../discovery/types.ts";

/** Discovery of one swarm. Without a `discovery` it does nothing. */
export class Announcing implements DiscoverySession {
  private readonly discovery: Discovery | null;
  private readonly request: DiscoveryRequest;
  /** Trackers learnt before it began; bounded by what one magnet or transport file may name. */
  private later: { readonly tiers: readonly (readonly string[])[]; readonly scope: ServerScope }[] = [];
  private session: DiscoverySession | null = null;
  private isPrivate: boolean;
  private closed = false;

  constructor(discovery: Discovery | null, request: DiscoveryRequest) {
    this.discovery = discovery;
    this.request = request;
    this.isPrivate = request.isPrivate;
  }

  /** Starts it once. Returns whether it had already begun. */
  begin(): boolean {
    if (this.session !== null) return true;
    if (this.closed || this.discovery === null) return false;
    this.session = this.discovery.start({ ...this.request, isPrivate: this.isPrivate });
    for (const { tiers, scope } of this.later.splice(0)) this.session.addTrackers(tiers, scope);
    return false;
  }

  setPrivate(): void {
    this.isPrivate = true;
    this.session?.setPrivate();
  }

  addTrackers(tiers: readonly (readonly string[])[], scope: ServerScope = "any"): void {
    if (this.session !== null) this.session.addTrackers(tiers, scope);
    else if (this.later.length < MAX_LATER && !this.closed) this.later.push({ tiers, scope });
  }

  needPeers(): void {
    this.session?.needPeers();
  }

  completed(): void {
    this.session?.completed();
  }

  status(): readonly DiscoverySourceStatus[] {
    return this.session?.status() ?? [];
  }

  async close(): Promise<void> {
    this.closed = true;
    this.later = [];
    await this.session?.close();
  }
}

/** Descriptions of one torrent that are remembered while its store opens. */
const MAX_LATER = 64;
