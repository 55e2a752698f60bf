/** Which web seeds may be in the private network. */
import { allowServer, type ServerScope } from "../../discovery/types.ts";

/** Web seeds whose scope is remembered; any more must be in the public network. */
const MAX_NAMED_WEB_SEEDS = 256;

/** The scopes of one torrent's web seeds. */
export class WebSeedScopes {
  readonly #scopes = new Map<string, ServerScope>();
  readonly #widened: (url: string) => void;

  /** `widened` is called for a web seed that may be anywhere from now on, and could not until now. */
  constructor(widened: (url: string) => void) {
    this.#widened = widened;
  }

  /** Notes the scope within which these web seeds may be asked. */
  allow(urls: readonly string[], scope: ServerScope): void {
    for (const url of urls) {
      if (this.#scopes.size >= MAX_NAMED_WEB_SEEDS && !this.#scopes.has(url)) continue;
      const before = this.#scopes.get(url);
      allowServer(this.#scopes, url, scope);
      if (before === "public" && scope === "any") this.#widened(url);
    }
  }

  isAny(url: string): boolean {
    return this.#scopes.get(url) === "any";
  }
}
