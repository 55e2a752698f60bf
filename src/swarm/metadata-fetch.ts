/** Gets the metadata of a magnet from peers (BEP 9): a few are asked at once, the first good answer wins. */
import type { PeerSession } from "./peer-session.ts";

/** Peers asked at the same time: more would only waste their bandwidth. */
const MAX_METADATA_ASKED = 4;

/** Chooses whom to ask. The link checks what arrives against the infohash. */
export class MetadataFetch {
  private readonly sessions: () => Iterable<PeerSession>;

  constructor(sessions: () => Iterable<PeerSession>) {
    this.sessions = sessions;
  }

  /** Asks more peers when fewer than the limit are being asked. Call when a peer said what it offers, or failed. */
  pump(): void {
    let asked = 0;
    for (const session of this.sessions()) {
      if (session.isReady && session.metadataAsked && !session.metadataUseless) asked++;
    }
    for (const session of this.sessions()) {
      if (asked >= MAX_METADATA_ASKED) return;
      if (!canServe(session)) continue;
      session.metadataAsked = true;
      asked++;
      session.link!.fetchMetadata();
    }
  }
}

function canServe(session: PeerSession): boolean {
  if (!session.isReady || session.metadataAsked || session.metadataUseless) return false;
  const offers = session.extensions;
  return offers !== null && offers.extensions.includes("ut_metadata") && (offers.metadataBytes ?? 0) > 0;
}
