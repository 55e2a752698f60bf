/**
 * Proof that a member is the broadcaster. Others dial a broadcaster first, and four times a second while it is gone; whoever
 * merely said that it was one would be dialled like that instead of the real one. The signature covers the peer ids of both
 * ends, so that a member has no use for a proof that it was given.
 */
import { encodeSourceMessage, type SourceMessage } from "../source-message.ts";
import type { LivePeerSession } from "./live-session.ts";

/** What proofs need of their swarm. */
export interface SourceProofsHost {
  /** Our peer id. */
  readonly peerId: Uint8Array;
  /** The broadcaster's signature for the member with `receiverId`; null for a viewer. */
  readonly sign: ((receiverId: Uint8Array, senderId: Uint8Array) => Promise<Uint8Array>) | null;
  /** Whether the broadcaster, with `senderId`, signed this for the member with `receiverId`. */
  readonly verify: (signature: Uint8Array, receiverId: Uint8Array, senderId: Uint8Array) => boolean;
  /** `session` leads to the broadcaster. */
  proven(session: LivePeerSession): void;
}

/** Gives and checks the proofs of one swarm. */
export class SourceProofs {
  readonly #host: SourceProofsHost;
  /** Sessions whose proof was examined: one each, so that nobody has us verify signatures without end. */
  readonly #examined = new WeakSet<LivePeerSession>();

  constructor(host: SourceProofsHost) {
    this.#host = host;
  }

  /** A member joined: a broadcaster proves to it at once that it is one. */
  joined(session: LivePeerSession): void {
    const { sign, peerId } = this.#host;
    // A member without the proof takes us for a viewer, which costs little: nothing is reported to the user.
    sign?.(session.info!.peerId, peerId).then((signature) => {
      if (session.isReady) session.link!.sendLive(encodeSourceMessage({ type: "source", signature }));
    }, () => {});
  }

  /** `session` sent its proof. */
  message(session: LivePeerSession, { signature }: SourceMessage): void {
    if (this.#examined.has(session)) return;
    this.#examined.add(session);
    const { verify, peerId, proven } = this.#host;
    if (!verify(signature, peerId, session.info!.peerId)) return;
    session.peer!.isSource = true;
    proven(session);
  }
}
