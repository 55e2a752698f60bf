/** Sessions that pages of other origins may read, because the user sent the stream to a player which is such a page. */

/** Sessions remembered: more than there are players; the oldest are forgotten. */
const MAX_SESSIONS = 64;

/** Those sessions, by their ids, which are secrets. */
export class SentSessions {
  readonly #ids = new Set<string>();

  /** From now on the id of this session gives access to its playlist and its segments. */
  allow(id: string): void {
    this.#ids.delete(id);
    this.#ids.add(id);
    if (this.#ids.size > MAX_SESSIONS) this.#ids.delete(this.#ids.values().next().value!);
  }

  /** The player no longer needs it. */
  forget(id: string): void {
    this.#ids.delete(id);
  }

  /** Whether pages of other origins may read the session. */
  has(id: string | undefined): boolean {
    return id !== undefined && this.#ids.has(id);
  }
}

/** The session that the address of an HLS playlist or segment names, below any prefix; undefined: none. */
export function sessionNamedBy(url: URL): string | undefined {
  const match = /^\/[^/]+\/(m|c)\/[0-9a-f]{40}\/([0-9a-z]+)\.(?:m3u8|ts)$/.exec(url.pathname);
  if (match === null) return undefined;
  return match[1] === "m" ? match[2] : url.searchParams.get("session") ?? undefined;
}
