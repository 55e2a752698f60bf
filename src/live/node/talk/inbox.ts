/** Hands the `live1` messages of neighbours to the parts of a node that they concern. */
import { MillraceError } from "../../../errors.ts";
import { decodeBundle } from "../../bundle.ts";
import { decodeLiveMessage, type PlaceMessage, UnsubscribeReason, WANTS_TIME } from "../../messages.ts";
import type { Announcer } from "./announcer.ts";
import type { Children } from "../trees/children.ts";
import type { Edge } from "../fetch/edge.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { Parents } from "../trees/parents.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import { BOUNDS } from "../neighbour/bounds.ts";
import { Allowance } from "../../../bytes/allowance.ts";
import { emptyPaths, mergePaths } from "../neighbour/place.ts";
import type { Probation } from "./probation.ts";
import type { Serving } from "./serving.ts";
import type { Sightings } from "../fetch/sightings.ts";
import type { Uploader } from "../line/uploader.ts";

/** The parts of a node that messages concern. */
export interface InboxParts {
  readonly uploader: Uploader;
  readonly sightings: Sightings;
  readonly edge: Edge;
  readonly probation: Probation;
  readonly serving: Serving;
  readonly children: Children;
  readonly parents: Parents;
  readonly announcer: Announcer;
}

/** Which PINGs of a neighbour get a PONG. */
interface Pongs {
  /** Blocks that it has sent: each may be followed by a PING that needs a PONG. */
  owed: number;
  /** For the other PINGs. */
  readonly allowance: Allowance;
}

/** Takes the messages of one member's neighbours. */
export class Inbox {
  readonly #view: NodeView;
  readonly #parts: InboxParts;
  readonly #pongs = new Notes<Pongs>(({ connectedMs }) => ({
    owed: 0,
    allowance: new Allowance(BOUNDS.pongsPerS, BOUNDS.pongsPerS, connectedMs),
  }));

  constructor(view: NodeView, parts: InboxParts) {
    this.#view = view;
    this.#parts = parts;
  }

  /** A message came from `peer`. Throws `protocol_violation` when no member would send it. */
  handle(peer: LivePeer, bytes: Uint8Array, nowMs: number): void {
    for (const part of decodeBundle(bytes) ?? [bytes]) if (!peer.closed) this.#handle(peer, part, nowMs);
  }

  /** A block came from `peer`. */
  blockCame(peer: LivePeer): void {
    const pongs = this.#pongs.of(peer);
    pongs.owed = Math.min(BOUNDS.owedPongs, pongs.owed + 1);
  }

  #handle(peer: LivePeer, bytes: Uint8Array, nowMs: number): void {
    const { uploader, sightings, edge, probation, serving, announcer } = this.#parts;
    const message = decodeLiveMessage(bytes);
    switch (message?.type) {
      case "window":
        return sightings.told(peer, message, nowMs);
      case "header":
        return edge.offered(peer, message.bytes, nowMs);
      case "subscribe":
        if (probation.holds(peer, message.mask, message.from, nowMs)) return;
        return serving.subscribed(peer, message.mask, message.from, nowMs);
      case "unsubscribe":
        this.#unsubscribed(peer, message.mask, message.reason, nowMs);
        return announcer.warn(nowMs);
      case "place":
        return this.#placeTold(peer, message, nowMs);
      case "headers":
        return this.#headersAsked(peer, message.lean, message.seqs);
      case "ping":
        if (uploader.echoed(peer, message.nonce, null, nowMs)) return this.#measured(nowMs);
        return this.#pinged(peer, message.nonce, nowMs);
      case "pong":
        if (uploader.echoed(peer, message.nonce, message.atMs, nowMs)) this.#measured(nowMs);
    }
  }

  /** An echo may show that our uplink is larger than we knew. In a crowd places go fast, so ask with it at once. */
  #measured(nowMs: number): void {
    const { uploader, parents, edge, announcer } = this.#parts;
    if (edge.isKnown && !this.#view.isSource && parents.isStronger) {
      announcer.tellUplink(nowMs);
      parents.tick(nowMs, edge.urgentUntil + 1);
    }
    uploader.pump(nowMs);
  }

  #unsubscribed(peer: LivePeer, mask: number, reason: number, nowMs: number): void {
    const { children, parents, edge, probation } = this.#parts;
    probation.withdraw(peer, mask);
    children.drop(peer, mask);
    parents.lost(peer, mask, nowMs, reason !== UnsubscribeReason.moved);
    // In a crowd places go fast: a member that waited for a tick after each refusal would be too late again and again.
    if (edge.isKnown && !this.#view.isSource) parents.adopt(nowMs, edge.urgentUntil + 1);
  }

  #headersAsked(peer: LivePeer, lean: number, seqs: readonly number[]): void {
    this.#parts.uploader.leaveOutHeaders(peer, lean);
    for (const seq of seqs) {
      const header = this.#view.window.get(seq)?.header;
      if (header != null && peer.knowsHeader(seq)) peer.send({ type: "header", bytes: header.bytes });
    }
  }

  #placeTold(peer: LivePeer, place: PlaceMessage, nowMs: number): void {
    if (place.depths.length !== this.#view.substreams) {
      throw new MillraceError("protocol_violation", "a PLACE has the wrong number of trees");
    }
    // It has more room than when it refused us.
    const bars = peer.place?.bars;
    place.bars.forEach((bar, substream) => {
      if (bar < (bars?.[substream] ?? 0)) this.#parts.parents.reopened(peer, substream);
    });
    const known = peer.place?.paths ?? emptyPaths(place.depths.length);
    peer.place = { ...place, paths: mergePaths(known, place.paths, place.pathMask) };
    if (this.#parts.parents.feedsAny(peer)) this.#parts.announcer.warn(nowMs);
  }

  #pinged(peer: LivePeer, nonce: bigint, nowMs: number): void {
    const pongs = this.#pongs.of(peer);
    if (pongs.owed === 0 && !pongs.allowance.take(1, nowMs)) return;
    pongs.owed = Math.max(0, pongs.owed - 1);
    if ((nonce & WANTS_TIME) === 0n) peer.send({ type: "ping", nonce });
    else peer.sendWithNews({ type: "pong", nonce, atMs: Math.floor(nowMs) >>> 0 }, nowMs);
  }
}
