/** The web seeds of one swarm. */
import { allowServer, type ServerScope } from "../discovery/types.ts";
import type { Suspect } from "./evidence.ts";
import type { Transfer } from "./transfer.ts";
import { logFailure, WebSeed, type WebSeedHost } from "./web-seed.ts";

/** Web seeds used per torrent. */
export const MAX_WEB_SEEDS = 4;

/** Web seeds whose scope is remembered; any more must be in the public network. */
const MAX_NAMED_WEB_SEEDS = 256;

/** Which web seeds may be in the private network. */
export class WebSeedScopes {
  readonly #scopes = new Map<string, ServerScope>();

  /** Notes the scope within which these web seeds may be asked. */
  allow(urls: readonly string[], scope: ServerScope): void {
    for (const url of urls) {
      if (this.#scopes.size < MAX_NAMED_WEB_SEEDS || this.#scopes.has(url)) allowServer(this.#scopes, url, scope);
    }
  }

  isAny(url: string): boolean {
    return this.#scopes.get(url) === "any";
  }
}

/** Opens, finds and closes web seeds. */
export class WebSeeds {
  #seeds: WebSeed[] = [];
  readonly #barred = new Set<string>();
  readonly #host: WebSeedHost;
  readonly #takeId: () => number;

  /** `takeId` returns the number of a new one among the swarm's sources. */
  constructor(host: WebSeedHost, takeId: () => number) {
    this.#host = host;
    this.#takeId = takeId;
  }

  get count(): number {
    return this.#seeds.length;
  }

  has(source: number): boolean {
    return this.#seeds.some((seed) => seed.source === source);
  }

  /** Opens those of `urls` that are not open yet and never sent corrupt data, up to the limit. */
  open(transfer: Transfer, urls: Iterable<string>): void {
    for (const url of urls) {
      if (this.#seeds.length >= MAX_WEB_SEEDS) break;
      if (this.#barred.has(url) || this.#seeds.some((seed) => seed.url === url)) continue;
      this.#seeds.push(new WebSeed(this.#host, transfer, url, this.#takeId()));
    }
    transfer.kick();
  }

  /** The web seed with this source number. */
  suspect(source: number): Suspect | undefined {
    const seed = this.#seeds.find((s) => s.source === source);
    return seed === undefined ? undefined : { source, host: seed.url, peerIdHex: "" };
  }

  /** It sent corrupt data and is never used again. False when the suspect is not a web seed. */
  convict(suspect: Suspect): boolean {
    const at = this.#seeds.findIndex((seed) => seed.source === suspect.source);
    if (at < 0) return false;
    this.#barred.add(this.#seeds[at]!.url);
    this.#seeds.splice(at, 1)[0]!.close();
    logFailure(this.#host.log, suspect.host, "it sent corrupt data");
    return true;
  }

  close(): void {
    for (const seed of this.#seeds) seed.close();
    this.#seeds = [];
  }
}
