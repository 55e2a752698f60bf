/** The web seeds of one swarm. A few are used at a time; one that is of no use gives its place to the next. */
import { type Deferred, deferred } from "../../bytes/deferred.ts";
import type { Suspect } from "../data/evidence.ts";
import type { Transfer } from "../data/transfer.ts";
import { Mirror, type MirrorKind } from "./mirror.ts";
import { logFailure, WebSeed, type WebSeedHost } from "./web-seed.ts";

/** Web seeds known per torrent: as many as a transport file and a magnet name together. */
export const MAX_WEB_SEEDS = 200;

/** Web seeds used at once that deliver and have every file. */
const MAX_DELIVERING = 4;

/** All that are used at once: those that did not answer yet, or lack a file, keep no place from others. */
const MAX_IN_USE = 12;

/** A web seed that has not answered after this long keeps its place, but the next one is asked as well, ms. */
const ANSWER_MS = 1_500;

/** Opens, finds and closes web seeds. */
export class WebSeeds {
  readonly #mirrors: Mirror[] = [];
  readonly #inUse = new Map<Mirror, WebSeed>();
  readonly #host: WebSeedHost;
  readonly #takeId: () => number;
  #transfer: Transfer | null = null;
  #congestion: Deferred<void> | null = null;
  #stopWork = () => {};

  /** `takeId` returns the number of a new one among the swarm's sources. */
  constructor(host: WebSeedHost, takeId: () => number) {
    this.#host = host;
    this.#takeId = takeId;
  }

  /** Those that are in use, or will be tried again. */
  get count(): number {
    return this.#mirrors.filter((mirror) => !mirror.isBarred).length;
  }

  /** Uses those of the torrent, and of `urls` (BEP 19), that are not known yet as well. */
  open(transfer: Transfer, urls: Iterable<string>): void {
    const { webSeeds, httpSeeds = [] } = transfer.metainfo;
    for (const url of [...webSeeds, ...urls]) this.#add(transfer, url, "files");
    for (const url of httpSeeds) this.#add(transfer, url, "pieces");
    if (this.#transfer === null) this.#stopWork = transfer.onWork(() => this.#work());
    this.#transfer = transfer;
    this.#fill(transfer);
    transfer.kick();
  }

  /** Asks a web seed that may be reachable by now, however often it was refused. */
  retry(url: string): void {
    for (const mirror of this.#mirrors) {
      if (mirror.url !== url) continue;
      mirror.forgive();
      this.#inUse.get(mirror)?.close();
      this.#inUse.delete(mirror);
    }
    if (this.#transfer === null) return;
    this.#fill(this.#transfer);
    this.#transfer.kick();
  }

  /** Blocks of a web seed were taken back; nothing when the source is another. */
  cancelled(source: number): void {
    for (const [mirror, seed] of this.#inUse) if (mirror.source === source) seed.cancelled();
  }

  /** The web seed with this source number. */
  suspect(source: number): Suspect | undefined {
    const mirror = this.#mirrorOf(source);
    return mirror === undefined ? undefined : { source, host: mirror.url, peerIdHex: "" };
  }

  /** Never asks the sender of a corrupt piece for it again, nor for its file. False when the suspect is no web seed. */
  convict(suspect: Suspect, piece: number): boolean {
    const mirror = this.#mirrorOf(suspect.source);
    if (mirror === undefined) return false;
    logFailure(this.#host.log, mirror.url, `it sent corrupt data for piece ${piece}`);
    mirror.sentBadPiece(piece);
    this.#inUse.get(mirror)?.close();
    this.#inUse.delete(mirror);
    // Whatever else this number sent is in doubt.
    mirror.sources.push(this.#takeId());
    if (this.#transfer !== null) this.#fill(this.#transfer);
    return true;
  }

  /** Nothing more is read, because what arrived waits to be hashed; or it is again. */
  setCongested(value: boolean): void {
    if (value) this.#congestion ??= deferred();
    else {
      this.#congestion?.resolve();
      this.#congestion = null;
    }
  }

  close(): void {
    this.#stopWork();
    this.setCongested(false);
    this.#transfer = null;
    for (const seed of this.#inUse.values()) seed.close();
    this.#inUse.clear();
  }

  #add({ metainfo }: Transfer, url: string, kind: MirrorKind): void {
    if (this.#mirrors.length >= MAX_WEB_SEEDS) return;
    if (this.#mirrors.some((mirror) => mirror.url === url && mirror.kind === kind)) return;
    this.#mirrors.push(new Mirror(metainfo, url, kind, this.#takeId()));
  }

  #throttle(): Promise<void> | undefined {
    const { downloadBucket } = this.#host;
    if (this.#congestion !== null) return this.#congestion.promise;
    return downloadBucket.open ? undefined : new Promise((resolve) => downloadBucket.whenOpen(resolve));
  }

  #mirrorOf(source: number): Mirror | undefined {
    return this.#mirrors.find(({ sources }) => sources.includes(source));
  }

  #work(): void {
    if (this.#transfer !== null) this.#fill(this.#transfer);
    for (const seed of [...this.#inUse.values()]) seed.work();
  }

  get #nowMs(): number {
    return this.#host.clock.monotonic();
  }

  #fill(transfer: Transfer): void {
    const nowMs = this.#nowMs;
    let delivering = 0;
    for (const [mirror, { askedMs, hasAnswered }] of this.#inUse) {
      if (hasAnswered ? mirror.isWhole : askedMs === null || nowMs - askedMs < ANSWER_MS) delivering++;
    }
    for (; delivering < MAX_DELIVERING && this.#inUse.size < MAX_IN_USE; delivering++) {
      const mirror = this.#next(nowMs);
      if (mirror === null) return;
      const seed = new WebSeed(this.#host, transfer, mirror, {
        gaveUp: (pauseMs) => {
          mirror.dueMs = this.#nowMs + pauseMs;
          this.#inUse.delete(mirror);
          this.#fill(transfer);
        },
        throttle: () => this.#throttle(),
      });
      this.#inUse.set(mirror, seed);
    }
  }

  /** The one that failed least, in the order in which they are named; null when none may be asked now. */
  #next(nowMs: number): Mirror | null {
    let best: Mirror | null = null;
    for (const mirror of this.#mirrors) {
      if (mirror.isBarred || mirror.dueMs > nowMs || this.#inUse.has(mirror)) continue;
      if (best === null || mirror.failures < best.failures) best = mirror;
    }
    return best;
  }
}
