/** Which web seeds may be in the private network. */
import { allowServer, type ServerScope } from "../../discovery/types.ts";

/** Web seeds whose scope is remembered; any more must be in the public network. */
const MAX_NAMED_WEB_SEEDS = 256;

/** The scopes of one torrent's web seeds. */
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
