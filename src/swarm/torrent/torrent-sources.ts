/** Connects a torrent's data path, which knows sources only by number, to its peers and web seeds. */
import { MillraceError } from "../../errors.ts";
import type { Suspect } from "../data/evidence.ts";
import type { Peers } from "./peers.ts";
import type { Sources } from "../data/sources.ts";
import type { WebSeeds } from "../web-seeds/web-seeds.ts";

/** The sources of one torrent. */
export class TorrentSources implements Sources {
  readonly #peers: Peers;
  readonly #webSeeds: WebSeeds;

  constructor(peers: Peers, webSeeds: WebSeeds) {
    this.#peers = peers;
    this.#webSeeds = webSeeds;
  }

  request(source: number, piece: number, offset: number, length: number): void {
    this.#peers.get(source)?.link?.request(piece, offset, length);
  }

  cancel(source: number, piece: number, offset: number, length: number): void {
    const peer = this.#peers.get(source);
    if (peer === undefined) this.#webSeeds.cancelled(source);
    else peer.link?.cancel(piece, offset, length);
  }

  interested(source: number, value: boolean): void {
    this.#peers.get(source)?.setInterested(value);
  }

  drop(source: number): void {
    this.#peers.get(source)?.drop(new MillraceError("timeout", "the peer was silent too long"));
  }

  canAsk(source: number, piece: number): boolean {
    const session = this.#peers.get(source);
    return session !== undefined && session.isReady && !session.peerChoking && (session.pieces?.has(piece) ?? false);
  }

  suspect(source: number): Suspect | undefined {
    return this.#peers.suspect(source) ?? this.#webSeeds.suspect(source);
  }

  convict(suspect: Suspect, piece: number): void {
    if (!this.#webSeeds.convict(suspect, piece)) this.#peers.convict(suspect);
  }

  setCongested(value: boolean): void {
    this.#peers.setCongested(value);
    this.#webSeeds.setCongested(value);
  }

  reportProgress(nowMs: number): void {
    for (const session of this.#peers.sessions) session.reportProgress(nowMs);
  }
}
